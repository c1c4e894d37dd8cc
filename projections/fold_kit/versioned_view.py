"""Versioned view: a table of versions declared as one list of columns, from which its DDL and both folds are made.

Every event that makes a version appends a row and ends the one that it replaces. A column has the value that the event
states for it; where the event states none, it keeps its value from the version before. Each value has a form in SQL,
for the fold of a large batch, and one in Python, for the fold of a few events; a law in the tests holds both alike.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import duckdb
import numpy as np
import orjson
import pyarrow as pa
from pydantic import BaseModel

from ledger.event import Fact
from projections.fold_kit import late_compute as pc
from projections.fold_kit.decisions import Counted
from projections.fold_kit.inserting import insert
from projections.fold_kit.sql_text import ALL_DIFFERENT, Json, Moment, Value, among, literal, text
from projections.fold_kit.workbench import Facts, Workbench, table_of

Row = Mapping[str, Value]
_CHANGES = "changes"
_AS_THEY_ARE = frozenset({str, int, float, bool, list})
"""Types of what an event states as the view keeps it; most values are of them."""
_IN_PLACE = 2
"""Versions that are cheaper to end one by one than by a join."""


class EventValue(NamedTuple):
    """A value that an event states, null for none: SQL over its accepted row e, with its data as d; the same in Python.

    The Python form gets the event and the version before.
    """

    sql: str
    python: Callable[[Counted, Row], Value]


EventValues = Mapping[type[Fact], EventValue]


class Derived(NamedTuple):
    """A value computed from the other columns of its version."""

    sql: str
    python: Callable[[Row], Value]


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A column: name, SQL type, comment, and where each event's value comes from.

    An event states the value in `by`, else that of `every`, else its own field of the column's name, if it has one.
    `carried`: the value before stays where an event states none. `added`: since a later version, so that a digest
    includes it only where it is not null; `undigested`: no digest does. `shown`: in answers, where it is not null.
    `different`: its texts hardly ever repeat.
    """

    name: str
    kind: str
    about: str = ""
    by: EventValues = field(default_factory=dict)
    every: EventValue | None = None
    derived: Derived | None = None
    nullable: bool = False
    carried: bool = True
    added: bool = False
    undigested: bool = False
    shown: bool = False
    different: bool = False

    def stated_by(self, fact: type[Fact]) -> EventValue | None:
        """The value that events of this fact state; None where they state none."""
        own = of_field(self.name) if self.name in fact.model_fields else None
        return self.by.get(fact) or self.every or own

    def read(self) -> str:
        """The column in a SELECT for Python, by its name: a time in microseconds, as Python has no infinite one."""
        return f"epoch_us({self.name}) AS {self.name}" if self.kind == "TIMESTAMPTZ" else self.name

    def value(self, read: Any) -> Value:
        """What was read, as a value to write."""
        form = None if read is None else {"TIMESTAMPTZ": Moment, "JSON": Json}.get(self.kind)
        value: Value = read if form is None else form(read)
        return value


def of_field(name: str) -> EventValue:
    """The value of a field of the event's data."""
    return EventValue(f'd."{name}"', lambda c, _: _as_value(getattr(c.fact, name)))


def of_method(name: str, sql: str) -> EventValue:
    """The value that a method of the fact returns."""
    return EventValue(sql, lambda c, _: getattr(c.fact, name)())


def constant(value: Value) -> EventValue:
    """The same value for every event."""
    return EventValue(literal(value), lambda *_: value)


def _as_value(stated: Any) -> Value:
    if stated is None or type(stated) in _AS_THEY_ARE:
        as_it_is: Value = stated
        return as_it_is
    if isinstance(stated, dict):
        return Json(orjson.dumps(stated).decode())
    value: Value = Json(stated.model_dump_json()) if isinstance(stated, BaseModel) else stated
    return value


def _own(name: str, kind: str, sql: str, python: Callable[[Counted], Value], about: str = "") -> Column:
    """A column that every event states, and that is never carried over."""
    nullable = name in ("valid_to", "valid_to_time", "trace_id", "message_id")
    different = name in ("id", "message_id", "event_id")
    value = EventValue(sql, lambda c, _: python(c))
    return Column(name, kind, about, every=value, nullable=nullable, carried=False, different=different)


def _at_first(name: str, kind: str, sql: str, python: Callable[[Counted], Value]) -> Column:
    """A column that only the first event of an entity states."""
    value = EventValue(f"CASE WHEN closes IS NULL THEN {sql} END", lambda c, _: python(c) if c.closes is None else None)
    return Column(name, kind, every=value)


OF_EVENT = {
    column.name: column
    for column in (
        _own("org", "VARCHAR", "org", lambda c: c.org),
        _own("id", "VARCHAR", "entity_id", lambda c: c.entity_id),
        _own("version", "INTEGER", "item_version", lambda c: c.version),
        _own("change", "VARCHAR", "split_part(type, '.', 2)", lambda c: c.fact.verb()),
        _own("valid_from", "BIGINT", "position", lambda c: c.position, "Log position of the event that made it"),
        _own("valid_to", "BIGINT", "NULL", lambda _: None, "That of the event that ended it; null while it holds"),
        _own("valid_from_time", "TIMESTAMPTZ", "stream_time", lambda c: Moment(c.stored_us)),
        _own("valid_to_time", "TIMESTAMPTZ", "NULL", lambda _: None),
        _own("actor", "VARCHAR", "actor", lambda c: c.envelope.actor),
        _own("trace_id", "VARCHAR", "trace_id", lambda c: c.trace_id),
        _own("message_id", "VARCHAR", "message_id", lambda c: c.message_id),
        _own("event_id", "VARCHAR", "event_id", lambda c: c.envelope.id),
    )
}
"""Columns about the event that made a version and the one that ended it, by name."""
CREATED_POSITION = _at_first("created_position", "BIGINT", "position", lambda c: c.position)
CREATED_AT = _at_first("created_at", "TIMESTAMPTZ", "stream_time", lambda c: Moment(c.stored_us))


class VersionedView:
    """The table of one kind of entity, its DDL and its folds.

    `facts` are the events that make versions, all of one entity. Those of `begins`, if any, make the first version and
    nothing else does: they are folded without a look at the versions before, as imports bring thousands of them.
    """

    def __init__(
        self, table: str, about: str, facts: Facts, columns: Sequence[Column], begins: type[Fact] | None = None
    ) -> None:
        self.table, self.columns = table, columns
        self._about, self._begins, self._entity = about, begins, facts[0].entity()
        self._folded = [column for column in columns if column.derived is None]
        self._carried = [column for column in self._folded if column.carried]
        self._derived = [(column, column.derived) for column in columns if column.derived is not None]
        self._values = {
            fact: {column: value for column in self._folded if (value := column.stated_by(fact)) is not None}
            for fact in facts
        }
        self._queries = {fact: self._query(fact) for fact in facts}
        self._end = f"""
            UPDATE {table} SET valid_to = e.position, valid_to_time = e.stream_time
            FROM ends_of_{table} e WHERE {table}.valid_from = e.closes
        """

    def names(self, of: Callable[[Column], bool]) -> tuple[str, ...]:
        """The names of the columns for which `of` holds."""
        return tuple(column.name for column in self.columns if of(column))

    def tables(self) -> str:
        """The DDL of the table, with its comments."""
        verbs = ", ".join(fact.verb() for fact in self._values)
        made_by = f"COMMENT ON COLUMN {self.table}.change IS 'What made it: {verbs}';\n"
        return create_table(self.table, self._about, self.columns) + made_by

    def fold(self, bench: Workbench, facts: Facts) -> None:
        """Append the versions of a batch, and end the ones that they replace."""
        if self._begins in facts:
            bench.run(self._insert(self._queries[self._begins]))
        changes = [fact for fact in facts if fact in self._values and fact is not self._begins]
        if changes:
            stated = bench.table(" UNION ALL ".join(self._queries[fact] for fact in changes))
            changed = filled(stated, [column.name for column in self._carried])
            bench.present({_CHANGES: changed})
            before = bench.few_of(self.table, "valid_from", f"SELECT closes FROM {_CHANGES}")
            bench.run(self._insert(self._from_changes(changed, before)))
            accepted = bench.presented("accepted").select(("entity", "closes", "position", "stream_time"))
            ends = accepted.filter(pc.and_(pc.equal(accepted["entity"], self._entity), pc.is_valid(accepted["closes"])))
            bench.run_later(self._end, {f"ends_of_{self.table}": ends})

    def fold_few(self, con: duckdb.DuckDBPyConnection, counted: list[Counted]) -> None:
        """The same for a few events."""
        made = [c for c in counted if type(c.fact) in self._values]
        versions = self._versions_at(con, [c.closes for c in made if c.closes is not None])
        rows = []
        for c in made:
            now = self.version(c, {} if c.closes is None else versions[c.closes])
            rows.append([now.get(column.name) for column in self.columns])
            versions[c.position] = {column.name: now.get(column.name) for column in self._carried}
        insert(con, self.table, rows)
        ends = [(c.closes, c.position, literal(Moment(c.stored_us))) for c in made if c.closes is not None]
        if len(ends) <= _IN_PLACE:
            for closes, position, moment in ends:
                con.execute(
                    f"UPDATE {self.table} SET valid_to = {position}, valid_to_time = {moment} "
                    f"WHERE valid_from = {closes}"
                )
        else:
            ended = ", ".join(f"({closes}, {position}, {moment})" for closes, position, moment in ends)
            con.execute(f"""
                UPDATE {self.table} SET valid_to = e.position, valid_to_time = e.moment
                FROM (VALUES {ended}) e(closes, position, moment) WHERE {self.table}.valid_from = e.closes
            """)

    def version(self, c: Counted, before: Row) -> Row:
        """The version that an event makes, from the carried columns of the one before; without what is null."""
        now = dict(before)
        for column, value in self._values[type(c.fact)].items():
            stated = value.python(c, before)
            if stated is not None:
                now[column.name] = stated
        return now | {column.name: derived.python(now) for column, derived in self._derived}

    def _query(self, fact: type[Fact]) -> str:
        """The rows of a fact's events, with the columns that they state."""
        values = self._values[fact]
        columns = ", ".join(
            f"({values[column].sql if column in values else 'NULL'})::{column.kind} AS {column.name}"
            for column in self._folded
        )
        return f"SELECT closes, {columns} FROM {table_of(fact)} e"

    def _from_changes(self, changed: pa.Table, before: str) -> str:
        """The rows of _CHANGES, with what some of them do not state, from the versions `before` the batch.

        A column that all of them state is not read there: contents are most of a table.
        """
        columns = ", ".join(
            f"coalesce(c.{column.name}, v.{column.name}) AS {column.name}"
            if column.carried and changed[column.name].null_count
            else f"c.{column.name}"
            for column in self._folded
        )
        return f"SELECT {columns} FROM {_CHANGES} c LEFT JOIN {before} v ON v.valid_from = c.closes"

    def _insert(self, rows: str) -> str:
        columns = ", ".join(column.name if column.derived is None else column.derived.sql for column in self.columns)
        return f"INSERT INTO {self.table} SELECT {columns} FROM ({rows})"

    def _versions_at(self, con: duckdb.DuckDBPyConnection, positions: Collection[int]) -> dict[int, Row]:
        """The carried columns of the versions made at these positions."""
        if not positions:
            return {}
        columns = ", ".join(column.read() for column in self._carried)
        rows = con.execute(
            f"SELECT valid_from, {columns} FROM {self.table} WHERE valid_from IN ({among(positions)})"
        ).fetchall()
        return {
            at: {column.name: column.value(value) for column, value in zip(self._carried, values, strict=True)}
            for at, *values in rows
        }


def filled(changes: pa.Table, carried: Iterable[str]) -> pa.Table:
    """Changes of a batch, each with what it does not state from those that it follows, as far as they are in it.

    `valid_from` is the position of each, `closes` that of the version which it follows; in the result, of the one that
    the first of its chain follows. `carried` are the columns to be filled.
    """
    made, closes = changes["valid_from"].to_numpy(), pc.fill_null(changes["closes"], 0).to_numpy()
    order = np.argsort(made)
    at = order[np.searchsorted(made, closes, sorter=order) % len(made)]
    itself = np.arange(len(made))
    before = np.where(made[at] == closes, at, itself)  # a change that follows none of the batch stands for itself
    if (before == itself).all():
        return changes
    for name in carried:
        column = changes[name]
        if 0 < column.null_count < len(made):
            from_row = _ends(np.where(column.is_valid().to_numpy(), itself, before))
            changes = changes.set_column(changes.column_names.index(name), name, column.take(pa.array(from_row)))
    first = changes["closes"].take(pa.array(_ends(before)))
    return changes.set_column(changes.column_names.index("closes"), "closes", first)


def _ends(following: np.ndarray) -> np.ndarray:
    """Where each chain ends, of links to the row before; the last row of a chain is linked to itself."""
    while ((further := following[following]) != following).any():
        following = further
    return following


def create_table(name: str, about: str, columns: Iterable[Column]) -> str:
    """The DDL of a table, with its comments."""
    columns = list(columns)
    defined = ", ".join(
        f"{each.name} {each.kind}{f' {ALL_DIFFERENT}' if each.different else ''}{'' if each.nullable else ' NOT NULL'}"
        for each in columns
    )
    table = f"CREATE TABLE {name} ({defined});\nCOMMENT ON TABLE {name} IS {text(about)};\n"
    return table + comments(name, columns)


def comments(relation: str, columns: Iterable[Column]) -> str:
    """The comments on a relation's columns, as DDL."""
    return "".join(
        f"COMMENT ON COLUMN {relation}.{each.name} IS {text(each.about)};\n" for each in columns if each.about
    )


def now_and_as_of(view: str, about: str, table: str, columns: str) -> str:
    """The DDL of a view over the versions that hold now, and of its macro over those that held at a position."""
    return f"""
CREATE VIEW {view} AS SELECT {columns} FROM {table} WHERE valid_to IS NULL;
COMMENT ON VIEW {view} IS {text(about)};
CREATE MACRO {view}_at(asked) AS TABLE
    SELECT {columns} FROM {table} WHERE valid_from <= asked AND (valid_to IS NULL OR valid_to > asked);
COMMENT ON MACRO TABLE {view}_at IS 'Internal: {view}_as_of, of a position';
"""

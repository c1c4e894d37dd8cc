"""Queries of knowledge items and their versions, now and at any position, restricted to what the caller may see.

Every query has the caller's access in its SQL: see projections.views.access.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb
import orjson

from kledger.contract.knowledge import Source
from kledger.contract.projects import SHARED_KINDS
from kledger.contract.scopes import Caller
from kledger.contract.words import ItemStatus
from ledger.event import JsonObject
from ledger.events.knowledge import KnowledgeSaved
from projections.fold_kit.named_rows import first_row, named_rows
from projections.fold_kit.page import bytes_of
from projections.fold_kit.sql_text import among, among_numbers
from projections.views.access import LISTED, listed, readable_by, seen_by
from projections.views.knowledge.evidence import confidence
from projections.views.knowledge.memory_fields import (
    MEMORY_COLUMNS,
    memory_of_fact,
    shown_memory,
    stated_memory,
    without_memory_columns,
)
from projections.views.knowledge.parts import WHOLE, Part
from projections.views.knowledge.tables import ITEM, JUDGED_BY, SHOWN, STATE, WHILE
from projections.views.times import rfc3339, with_times

_READ = [column for column in ITEM if column.name not in ("org", "supporting", "opposing", "erased")]
ITEM_COLUMNS = ", ".join(column.read() for column in _READ)
"""The columns of an item, by name, from the view `knowledge`, from `knowledge_at` or from MADE."""
ITEM_NAMES = tuple(column.name for column in _READ)
ITEM_VALUES = ", ".join(f"{column.name}{'::VARCHAR' if column.kind == 'JSON' else ''}" for column in _READ)
"""The columns of an item, once they are read, as values of a JSON array: a document as its text, which keeps
its numbers."""
LONG = ("task", "content", "tags", "resource_ids", "source", "memory")
"""The columns of an item, and of a version of one, that may be long."""
BYTES = bytes_of(LONG)
"""The bytes of an item, or of a version of one (SQL)."""
WHERE_SET = ("merged_into", *SHOWN)
"""The columns that answers have where they are not null."""
STATED = ("types", "task", "content", "tags", "scopes", "resource_ids", "source", "score")
"""What a save states of an item, beside its owner and its counts."""
_VERSION_COLUMNS = f"""version, change, types, task, {{content}}, tags, scopes, owner, visibility, resource_ids, source,
    score, status, {"".join(f"{name}, " for name in (*SHOWN, *MEMORY_COLUMNS))} valid_from, valid_to,
    epoch_us(valid_from_time) AS valid_from_time, epoch_us(valid_to_time) AS valid_to_time, actor, trace_id,
    message_id, event_id, shared_with, writers"""
_FIRST_COLUMNS = ", ".join(f"v.{name}" for name in (*STATED, "supersedes", *MEMORY_COLUMNS))
_STATE = {column.name: column.read() for column in STATE if column not in JUDGED_BY}
_STATE_COLUMNS = ", ".join(_STATE.values())
_CONTENT_COLUMNS = ", ".join(column.read() for column in _READ if column.name not in _STATE)


@dataclass(frozen=True, slots=True)
class Standing:
    """State of an item that a change is checked against.

    `visible`: the caller sees it, and not only as the operator; `writers`: who may revise it beside its owner;
    `version_position`: of the event that made its present version.
    """

    id: str
    version: int
    owner: str
    status: ItemStatus
    position: int
    visible: bool
    writers: list[str]
    shared_with: list[str]
    scopes: list[str]
    kind: str | None
    supersedes: str | None
    version_position: int


@dataclass(frozen=True, slots=True)
class SavedStatement:
    """Content of an item's first version, without its counts; `acl`: the ACL that was set directly after the save.

    `erased`: the content was erased with a person.
    """

    event_id: str
    position: int
    owner: str
    statement: tuple[Any, ...]
    acl: list[JsonObject]
    erased: bool

    @property
    def last(self) -> int:
        """The position of the last event of the save: of its ACL, where it has one."""
        return self.position + bool(self.acl)


MOST_TASK = 200
"""Characters of an item's task where it only names the item."""


def standings(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, ids: Sequence[str]) -> dict[str, Standing]:
    """The items out of `ids` that the caller may read, by id."""
    seen, seen_values = seen_by(caller)
    may, may_values = readable_by(caller)
    rows = cursor.execute(
        f"""SELECT id, version, owner, status, position, {seen}, writers, shared_with, scopes, kind, supersedes,
                version_position
            FROM knowledge WHERE org = ? AND id IN ({LISTED}) AND {may}""",
        [*seen_values, org, listed(ids), *may_values],
    ).fetchall()
    return {row[0]: Standing(*row) for row in rows}


def standing(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, item_id: str) -> Standing | None:
    """One item that the caller may read; None where there is none."""
    return standings(cursor, org, caller, [item_id]).get(item_id)


def item(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, item_id: str, as_of: int | None = None
) -> JsonObject | None:
    """One item in full (`whole`), with its `created_position`; None when there is none that the caller may read.

    As of a position, it has to be readable both then and now: access that was withdrawn since stays withdrawn.
    """
    may, values = readable_by(caller)
    if as_of is None:
        row = _item_now(cursor, org, item_id, may, values)
    else:
        row = first_row(
            cursor,
            f"""SELECT {ITEM_COLUMNS} FROM knowledge_at(?) WHERE org = ? AND id = ? AND {may}
                    AND EXISTS (FROM knowledge WHERE org = ? AND id = ? AND {may})""",
            [as_of, org, item_id, *values, org, item_id, *values],
        )
    return None if row is None else {**whole(row), "created_position": row["created_position"]}


# The position of an event that there is; that it is about another item, or about none, does not matter.
_ANY_VERSION = 1


def _item_now(
    cursor: duckdb.DuckDBPyConnection, org: str, item_id: str, may: str, values: Sequence[str]
) -> JsonObject | None:
    """The item's row of the view `knowledge`, from its two tables: two plain queries take less time than the join."""
    state = first_row(cursor, f"SELECT {_STATE_COLUMNS} FROM knowledge_state WHERE org = ? AND id = ?", [org, item_id])
    # Of an id that there is not the version is asked for as well: otherwise the time of the answer would tell it from
    # the id of an item that the caller may not read.
    at = _ANY_VERSION if state is None else state["version_position"]
    version = first_row(
        cursor, f"SELECT {_CONTENT_COLUMNS} FROM knowledge_versions WHERE valid_from = {at} AND {may}", values
    )
    if state is None or version is None:
        return None
    return _of_both(state, version)


def rows_created_at(cursor: duckdb.DuckDBPyConnection, created: Sequence[int]) -> list[JsonObject]:
    """The rows of `knowledge` of the items that were saved at these positions, in any order; by plain queries too."""
    at = among_numbers("created_position", created)
    states = named_rows(cursor, f"SELECT {_STATE_COLUMNS} FROM knowledge_state WHERE {at}")
    made = among_numbers("valid_from", [state["version_position"] for state in states])
    versions = named_rows(cursor, f"SELECT valid_from, {_CONTENT_COLUMNS} FROM knowledge_versions WHERE {made}")
    by_position = {version["valid_from"]: version for version in versions}
    return [_of_both(state, by_position[state["version_position"]]) for state in states]


def _of_both(state: JsonObject, version: JsonObject) -> JsonObject:
    """The row of the view `knowledge`, of a row of each of its tables."""
    now = confidence(version["confidence"], state["supporting"], state["opposing"])
    gone = {name: version[name] if state["status"] == status else None for name, status in WHILE.items()}
    return version | state | {"confidence": now} | gone


def readable_ids(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, ids: Sequence[str]) -> set[str]:
    """The ids out of `ids` that the caller sees now."""
    seen, values = seen_by(caller)
    rows = cursor.execute(
        f"SELECT id FROM knowledge WHERE org = ? AND id IN ({LISTED}) AND {seen}",
        [org, listed(ids), *values],
    ).fetchall()
    return {row[0] for row in rows}


def versions(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, item_id: str, part: Part = WHOLE
) -> list[JsonObject]:
    """The versions of an item that the caller may read, oldest first; each is checked by the scopes it had then.

    Call `item` first, to check that the caller may read the item itself.
    """
    may, values = readable_by(caller, "v.")
    rows = named_rows(
        cursor,
        f"""SELECT {_VERSION_COLUMNS.format(content=part.content())} FROM knowledge_versions AS v
            WHERE org = ? AND id = ? AND {may} {part.narrowed("valid_from")}""",
        [org, item_id, *values],
    )
    rows.reverse()
    reasons = _reasons(cursor, [row["valid_from"] for row in rows])
    result = []
    for row in rows:
        length = row.pop("length", 0)
        row |= ({"length": length} if length > len(row["content"]) else {}) | reasons.get(row["valid_from"], {})
        acl = _acl(row.pop("shared_with"), row.pop("writers"))
        row = {name: value for name, value in row.items() if name not in SHOWN or value is not None}
        stated = {"tags": parsed(row["tags"]), "source": _filled_fields(row["source"])}
        version = with_times(without_memory_columns(row), "valid_from_time", "valid_to_time")
        result.append(version | stated | acl | shown_memory(row))
    return result


def _reasons(cursor: duckdb.DuckDBPyConnection, positions: Sequence[int]) -> dict[int, JsonObject]:
    """The `reason` of each of these events that states one, by position."""
    if not positions:
        return {}
    rows = cursor.execute(
        f"""SELECT position, data->>'$.reason' AS reason FROM other_events
            WHERE position IN ({among(positions)}) AND reason IS NOT NULL"""
    ).fetchall()
    return {position: {"reason": reason} for position, reason in rows}


def shared_status_at(cursor: duckdb.DuckDBPyConnection, org: str, item_id: str, position: int) -> ItemStatus | None:
    """The status that the event at a position made of an item of a kind that projects share; None of any other."""
    row = cursor.execute(
        f"""SELECT status FROM knowledge_versions
            WHERE org = ? AND id = ? AND valid_from = ? AND kind IN ({among(SHARED_KINDS)})""",
        [org, item_id, position],
    ).fetchone()
    return None if row is None else row[0]


def owners(cursor: duckdb.DuckDBPyConnection, org: str, item_id: str) -> list[str]:
    """The present and former owners of an item."""
    rows = cursor.execute(
        "SELECT DISTINCT owner FROM knowledge_versions WHERE org = ? AND id = ?", [org, item_id]
    ).fetchall()
    return [owner for (owner,) in rows]


def saved_statements(cursor: duckdb.DuckDBPyConnection, org: str, ids: Sequence[str]) -> dict[str, SavedStatement]:
    """The first versions of those of `ids` that exist, without a check of access: an id is taken or free."""
    rows = named_rows(
        cursor,
        f"""SELECT v.id, v.event_id, v.valid_from, v.owner, v.erased, {_FIRST_COLUMNS},
                    next.shared_with, next.writers
                FROM knowledge_versions AS v
                LEFT JOIN (
                    SELECT valid_from, shared_with, writers FROM knowledge_versions
                    WHERE org = ? AND change = 'shared' AND version = 2
                ) AS next ON next.valid_from = v.valid_to AND v.valid_to = v.valid_from + 1
                WHERE v.org = ? AND v.change = 'saved' AND v.id IN ({LISTED})""",
        [org, org, listed(ids)],
    )
    return {
        row["id"]: SavedStatement(
            event_id=row["event_id"],
            position=row["valid_from"],
            owner=row["owner"],
            statement=_statement(
                row | {"tags": parsed(row["tags"]), "source": source_of(row["source"]), "memory": stated_memory(row)}
            ),
            acl=acl_of(row["shared_with"] or [], row["writers"] or []),
            erased=row["erased"],
        )
        for row in rows
    }


def source_of(text: str) -> Source:
    """The source in a column's text."""
    return Source.model_validate(_filled_fields(text), strict=False)


def statement_of(fact: KnowledgeSaved) -> tuple[Any, ...]:
    """The content of a save, comparable with SavedStatement.statement."""
    return _statement({**dict(fact), "source": Source(**dict(fact.source)), "memory": memory_of_fact(fact.memory)})


def _statement(stated: JsonObject) -> tuple[Any, ...]:
    return tuple(stated[name] for name in (*STATED, "memory", "supersedes"))


def item_of(row: JsonObject) -> JsonObject:
    """An item as lists show it, without its empty fields, from a row of ITEM_COLUMNS.

    `message_id` is that of its origin, else that of its source.
    """
    source = _filled_fields(row["source"])
    message_id = parsed(row["origin"]).get("message_id") or source.get("message_id")
    return {
        "id": row["id"],
        "task": row["task"],
        "content": row["content"],
        "types": row["types"],
        "tags": parsed(row["tags"]),
        "scopes": row["scopes"],
        "owner": row["owner"],
        "visibility": row["visibility"],
        "resource_ids": row["resource_ids"],
        "source": source,
        "eval": {name: row[name] for name in ("score", "helpful", "harmful", "confidence")},
        "quality_score": float(row["score"] + row["helpful"] - 2 * row["harmful"]),
        "version": row["version"],
        "position": row["position"],
        "created_at": rfc3339(row["created_at"]),
        "updated_at": rfc3339(row["updated_at"]),
        **{name: row[name] for name in WHERE_SET if row[name] is not None},
        **_acl(row["shared_with"], row["writers"]),
        **({} if message_id is None else {"message_id": message_id}),
        **shown_memory(row),
    }


_EMPTY_SOURCE: JsonObject = Source().model_dump()


def whole(row: JsonObject) -> JsonObject:
    """An item with every field, null or empty ones included, and its `status`.

    `origin`, from its save, is about the whole item: trace, message, and the dates that it had where it was before.
    """
    item = item_of(row)
    return {
        **item,
        "message_id": item.get("message_id"),
        "source": _EMPTY_SOURCE | item["source"],
        "origin": None if row["origin"] is None else parsed(row["origin"]),
        "status": row["status"],
    }


def acl_of(shared_with: Sequence[str], writers: Sequence[str]) -> list[JsonObject]:
    """An ACL as its event has it: entities, each with `read` or `read_write`."""
    return [{"entity": entity, "permission": "read_write" if entity in writers else "read"} for entity in shared_with]


def scopes_of(item: JsonObject) -> list[str]:
    """Every scope and ACL entity that may read an item (given as JSON), beside its owner."""
    return [*item["scopes"], *(entry["entity"] for entry in item.get("acl", ()))]


def _acl(shared_with: Sequence[str], writers: Sequence[str]) -> JsonObject:
    """`acl`, where the item has one."""
    return {"acl": acl_of(shared_with, writers)} if shared_with else {}


def parsed(text: str | None) -> Any:
    """The JSON document in a column's text; `{}` for null."""
    return {} if text is None else orjson.loads(text)


def _filled_fields(text: str | None) -> JsonObject:
    """A source without its null fields."""
    return {name: value for name, value in parsed(text).items() if value is not None}

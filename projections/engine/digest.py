"""Digests of views that do not depend on the order of rows, and the rows in which two views differ.

A relation's digest is made of the number of its rows and the sums of their MD5 halves: equal sets of rows give equal
digests, in whatever order and in however many batches they were written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from projections.engine.registry import VIEWS

RELATIONS: dict[str, tuple[str, ...]] = {relation: keys for view in VIEWS for relation, keys in view.digested.items()}
ADDED: dict[str, tuple[str, ...]] = {relation: names for view in VIEWS for relation, names in view.added.items()}
LATER = {relation for view in VIEWS for relation in view.later}
UNDIGESTED = {relation: names for view in VIEWS for relation, names in view.undigested.items()}
OUTDATED = {relation: query for view in VIEWS for relation, query in view.outdated.items()}
MOST_DIFFERENCES = 100


@dataclass(frozen=True, slots=True)
class RelationDigest:
    """One relation's rows and digest (64 hexadecimal digits)."""

    rows: int
    digest: str


NO_ROWS = RelationDigest(0, "")
"""Of a relation of a later version that a digest leaves out, as it has no rows."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One row that differs between two views; `what`: `only live`, `only replayed`, or the columns that differ."""

    view: str
    key: str
    what: str


def digests(con: duckdb.DuckDBPyConnection) -> dict[str, RelationDigest]:
    """The digest of every relation that follows from the log; of one of a later version where it has rows."""
    return digests_of({relation: con.execute(digest_query(con, relation)).fetchone() for relation in RELATIONS})


def digests_of(answers: Mapping[str, tuple[Any, ...] | None]) -> dict[str, RelationDigest]:
    """The digests from the one row that each relation's `digest_query` answers."""
    found = {relation: _digest(answer) for relation, answer in answers.items()}
    return {relation: digest for relation, digest in found.items() if digest.rows or relation not in LATER}


def state_digest(parts: dict[str, RelationDigest]) -> str:
    """One digest of the whole state, computed from its relations' digests."""
    lines = "\n".join(f"{name}:{part.rows}:{part.digest}" for name, part in sorted(parts.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def digest_query(con: duckdb.DuckDBPyConnection, relation: str) -> str:
    """The query of what a relation's digest is made of: the number of its rows and two sums, in one row."""
    return f"""
        SELECT count(*), coalesce(sum(md5_number_lower(row_text)), 0), coalesce(sum(md5_number_upper(row_text)), 0)
        FROM ({rows_as_text(con, relation)})
    """


def _digest(answer: tuple[Any, ...] | None) -> RelationDigest:
    assert answer is not None  # an aggregate without GROUP BY always answers one row
    rows, lower, upper = (int(value) for value in answer)
    return RelationDigest(rows, hashlib.sha256(f"{rows}:{upper}:{lower}".encode()).hexdigest())


def rows_as_text(con: duckdb.DuckDBPyConnection, relation: str, *more: str) -> str:
    """The query of a relation's rows as the texts that are digested (`row_text`), and `more` columns of each."""
    row = f"{relation}::VARCHAR"
    added, excluded = ADDED.get(relation, ()), UNDIGESTED.get(relation, ())
    if added or excluded:
        names = [name for name, *_ in con.execute(f"DESCRIBE {relation}").fetchall() if name not in (*added, *excluded)]
        fields = ", ".join(f'"{name}" := "{name}"' for name in names)
        row = f"struct_pack({fields})::VARCHAR"
        row += "".join(f""" || coalesce(', {name}: ' || "{name}"::VARCHAR, '')""" for name in added)
    if relation in OUTDATED:
        key = ", ".join(RELATIONS[relation])
        row += f" || CASE WHEN ({key}) IN ({OUTDATED[relation]}) THEN ', outdated' ELSE '' END"
    return f"SELECT {', '.join([*more, f'{row} AS row_text'])} FROM {relation}"


def differences(live: duckdb.DuckDBPyConnection, replayed: duckdb.DuckDBPyConnection) -> list[Difference]:
    """The rows in which two views differ, at most MOST_DIFFERENCES of each relation, in key order."""
    ours, theirs = digests(live), digests(replayed)
    return [
        difference
        for relation in RELATIONS
        if ours.get(relation) != theirs.get(relation)
        for difference in _rows_that_differ(relation, live, replayed)
    ]


def _rows_that_differ(
    relation: str, live: duckdb.DuckDBPyConnection, replayed: duckdb.DuckDBPyConnection
) -> list[Difference]:
    with duckdb.connect(":memory:", config={"temp_directory": ""}) as scratch:
        scratch.register("live", _keyed(live, relation))
        scratch.register("replayed", _keyed(replayed, relation))
        rows = scratch.execute(f"""
            SELECT coalesce(l.key, r.key), l.key IS NOT NULL, r.key IS NOT NULL
            FROM live l FULL JOIN replayed r ON l.key = r.key
            WHERE l.row_hash IS DISTINCT FROM r.row_hash ORDER BY ALL LIMIT {MOST_DIFFERENCES}
        """).fetchall()
    return [
        Difference(
            relation,
            key,
            _what(relation, key, live, replayed)
            if is_live and is_replayed
            else "only live"
            if is_live
            else "only replayed",
        )
        for key, is_live, is_replayed in rows
    ]


def _key(relation: str) -> str:
    return f"concat_ws('/', {', '.join(RELATIONS[relation])})"


def _keyed(con: duckdb.DuckDBPyConnection, relation: str) -> pa.Table:
    return con.execute(
        f"SELECT key, md5(row_text) AS row_hash FROM ({rows_as_text(con, relation, f'{_key(relation)} AS key')})"
    ).to_arrow_table()


def _what(relation: str, key: str, live: duckdb.DuckDBPyConnection, replayed: duckdb.DuckDBPyConnection) -> str:
    rows = []
    for con in (live, replayed):
        answer = con.execute(f"SELECT COLUMNS(*)::VARCHAR FROM {relation} WHERE {_key(relation)} = ?", [key])
        names = [column[0] for column in answer.description or ()]
        rows.append(dict(zip(names, answer.fetchone() or (), strict=False)))
    columns = [name for name in rows[0] if rows[0][name] != rows[1].get(name)]
    return f"differs in {', '.join(columns)}" if columns else "stands there more than once"

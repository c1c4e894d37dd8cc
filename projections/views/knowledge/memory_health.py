"""Health of memories: how many there are of each layer, how sure they are, and which need a look.

Each number counts memories that a list can show: what is counted, and what the list of it selects, is one predicate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import get_args

import duckdb

from kledger.contract.scopes import Caller
from kledger.contract.words import MemoryConcern, MemoryLayer
from ledger.event import JsonObject
from projections.fold_kit.named_rows import named_rows
from projections.fold_kit.recalls import counts
from projections.fold_kit.visibility import readers, shared
from projections.views.access import seen_by
from projections.views.times import timestamp

LAYERS: tuple[MemoryLayer, ...] = get_args(MemoryLayer)


def alive(moment: str) -> str:
    """The predicate of items m that are in recall at a moment (SQL)."""
    return f"(m.status = 'active' AND (m.expires_at IS NULL OR m.expires_at > {moment}))"


def over(moment: str) -> str:
    """The predicate of items m that are expired and not cleaned, whether or not a node has said so."""
    return f"(m.status = 'expired' OR (m.status = 'active' AND m.expires_at <= {moment}))"


def in_conflict(table: str = "m.", seen: str | None = None) -> str:
    """The predicate of items that are a side of an unresolved conflict, whose `other` side is one that is `seen`."""
    sides = " UNION ALL ".join(
        f"SELECT c.org, c.{side} FROM conflicts AS c "
        + (f"JOIN knowledge AS other ON other.org = c.org AND other.id = c.{against} AND {seen} " if seen else "")
        + "WHERE c.status = 'recorded'"
        for side, against in (("first", "second"), ("second", "first"))
    )
    return f"({table}org, {table}id) IN ({sides})"


def never_recalled(table: str = "m.") -> str:
    """The predicate of items that no recall has served to a reader."""
    served = f"r.org = {table}org AND r.item_id = {table}id AND {counts('r.')} AND {by_a_reader(table)}"
    return f"NOT EXISTS (FROM served_items AS r WHERE {served})"


def by_a_reader(table: str = "m.") -> str:
    """The predicate of recalls r of an item that count: who else may state one as a publisher, but reads nothing of it.
    Members of a group are not in the log."""
    return f"({has_groups(table)} OR list_contains({readers(table)}, r.actor))"


def has_groups(table: str = "m.") -> str:
    """The predicate of items that everybody reads, or the members of some group."""
    everybody = readers(table)
    return f"(list_contains({everybody}, 'public') OR len({shared(everybody)}) > 0)"


def _promoted(table: str = "m.") -> str:
    promotion = f"v.org = {table}org AND v.id = {table}id AND v.change = 'promoted'"
    return f"EXISTS (FROM knowledge_versions AS v WHERE {promotion})"


CONCERNS: dict[MemoryConcern, Callable[[str], str]] = {
    "conflicting": in_conflict,
    "promoted": _promoted,
    "never_recalled": never_recalled,
}
"""What may be said of an item that is in recall."""


def to_look_at(predicate: str, table: str = "m.") -> str:
    """The predicate of what needs a look: of an erased item nobody reads, changes or recalls anything any more."""
    return f"({predicate} AND NOT {table}erased)"


def concern(name: MemoryConcern, caller: Caller, table: str = "m.") -> tuple[str, list[str]]:
    """The predicate of a concern, as far as the caller may know of it, and its parameters: of a conflict the caller has
    to see both sides."""
    if name != "conflicting":
        return to_look_at(CONCERNS[name](table), table), []
    seen, values = seen_by(caller, "other.")
    return to_look_at(in_conflict(table, seen), table), [*values, *values]


def numbers(in_recall: str, over: str, concerns: Mapping[MemoryConcern, str], layers: Iterable[str] = LAYERS) -> str:
    """The columns that count items m: those in recall, by layer and by concern, and what is over or proposed."""
    by_layer = ", ".join(f"count(*) FILTER ({in_recall} AND m.layer = '{layer}') AS {layer}" for layer in layers)
    found = ", ".join(f"count(*) FILTER ({in_recall} AND {sql}) AS {name}" for name, sql in concerns.items())
    return f"""count(*) FILTER ({in_recall}) AS total, {by_layer},
        avg(m.confidence) FILTER ({in_recall}) AS mean_confidence,
        count(*) FILTER ({over}) AS expired, count(*) FILTER (m.status = 'proposed') AS proposed, {found}"""


_ALL = {name: to_look_at(predicate("m.")) for name, predicate in CONCERNS.items()}
TABLES = f"""
CREATE VIEW memory_health AS
    SELECT m.org, {numbers(alive("now()"), over("now()"), _ALL)} FROM memory_items AS m GROUP BY m.org;
COMMENT ON VIEW memory_health IS 'How the memories of a tenant are, now';
COMMENT ON COLUMN memory_health.total IS 'Memories in recall';
COMMENT ON COLUMN memory_health.mean_confidence IS 'Of the memories in recall; null where there is none';
COMMENT ON COLUMN memory_health.expired IS 'Short memories that are over and not cleaned';
COMMENT ON COLUMN memory_health.proposed IS 'Memories that wait for a coordinator of their project';
COMMENT ON COLUMN memory_health.conflicting IS 'Memories in recall that are a side of an unresolved conflict';
COMMENT ON COLUMN memory_health.promoted IS 'Memories in recall that were short once';
COMMENT ON COLUMN memory_health.never_recalled IS 'Memories in recall that no recall has served, looks at a page aside';
"""


def health(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, moment: datetime) -> JsonObject:
    """The numbers over the memories that the caller sees."""
    concerns: dict[MemoryConcern, str] = {}
    values: list[str] = []
    for name in CONCERNS:
        concerns[name], bound = concern(name, caller)
        values += bound
    seen, seen_values = seen_by(caller, "m.")
    at = timestamp(moment)
    (row,) = named_rows(
        cursor,
        f"SELECT {numbers(alive(at), over(at), concerns)} FROM memory_items AS m WHERE m.org = ? AND {seen}",
        [*values, org, *seen_values],
    )
    by_layer = {layer: row.pop(layer) for layer in LAYERS}
    return {"total": row["total"], "by_layer": by_layer, **{name: row[name] for name in row if name != "total"}}


def to_clean(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, moment: datetime, most: int
) -> list[JsonObject]:
    """Up to `most` expired memories that the caller may change, with their owner; those that ended first come first."""
    at = timestamp(moment)
    owned, values = "TRUE", list[str]()
    if not caller.is_operator:
        owned, values = f"m.owner IN ({', '.join('?' * len(caller.entities()))})", caller.entities()
    return named_rows(
        cursor,
        f"""SELECT m.id, m.owner, m.position FROM memory_items AS m WHERE m.org = ? AND {owned} AND {over(at)}
            ORDER BY m.expires_at, m.id LIMIT {int(most)}""",
        [org, *values],
    )

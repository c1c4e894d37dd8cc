"""Health of memories: how many there are of each layer, how sure they are, and which need a look.

Each number counts memories that a list can show: what is counted, and what the list of it selects, is one predicate.
"""

from __future__ import annotations

from datetime import datetime
from typing import get_args

import duckdb

from kledger.contract.scopes import Caller
from kledger.contract.words import MemoryConcern, MemoryLayer
from ledger.event import JsonObject
from projections.fold_kit.named_rows import named_rows
from projections.fold_kit.recalls import counts
from projections.fold_kit.visibility import readers, shared
from projections.views.knowledge.ask import microseconds, seen_by

LAYERS: tuple[MemoryLayer, ...] = get_args(MemoryLayer)


def alive(moment: str) -> str:
    """The predicate of memories m that are in recall at a moment (SQL)."""
    return f"(m.status = 'active' AND (m.expires_at IS NULL OR m.expires_at > {moment}))"


def over(moment: str) -> str:
    """The predicate of memories m that are expired and not cleaned, whether or not a node has said so."""
    return f"(m.status = 'expired' OR (m.status = 'active' AND m.expires_at <= {moment}))"


_OPEN = "FROM conflicts AS c WHERE c.org = m.org AND c.status = 'recorded' AND m.id IN (c.first, c.second)"
_READERS = readers("m.")
# Who else may state a recall as a publisher, but reads nothing of it. Members of a group are not in the log.
_BY_A_READER = (
    f"(list_contains({_READERS}, r.actor) OR list_contains({_READERS}, 'public') OR len({shared(_READERS)}) > 0)"
)
CONCERNS: dict[MemoryConcern, str] = {
    "conflicting": f"EXISTS ({_OPEN})",
    "promoted": "EXISTS (FROM knowledge_versions AS v WHERE v.org = m.org AND v.id = m.id AND v.change = 'promoted')",
    "never_recalled": (
        f"NOT EXISTS (FROM recalls AS r WHERE r.org = m.org AND r.item_id = m.id AND {counts('r.')} AND {_BY_A_READER})"
    ),
}
"""What may be said of a memory m that is in recall."""


def concern(name: MemoryConcern, caller: Caller) -> tuple[str, list[str]]:
    """The predicate of a concern, as far as the caller may know of it, and its parameters: of a conflict the caller has
    to see both sides."""
    if name != "conflicting":
        return CONCERNS[name], []
    seen, values = seen_by(caller, "k.")
    other = (
        f"EXISTS (FROM knowledge AS k WHERE k.org = c.org AND k.id IN (c.first, c.second) AND k.id <> m.id AND {seen})"
    )
    return f"EXISTS ({_OPEN} AND {other})", values


def _numbers(moment: str, concerns: dict[MemoryConcern, str]) -> str:
    in_recall = alive(moment)
    layers = ", ".join(f"count(*) FILTER ({in_recall} AND m.layer = '{layer}') AS {layer}" for layer in LAYERS)
    found = ", ".join(f"count(*) FILTER ({in_recall} AND {sql}) AS {name}" for name, sql in concerns.items())
    return f"""count(*) FILTER ({in_recall}) AS total, {layers},
        avg(m.confidence) FILTER ({in_recall}) AS mean_confidence,
        count(*) FILTER ({over(moment)}) AS expired, count(*) FILTER (m.status = 'proposed') AS proposed, {found}"""


TABLES = f"""
CREATE VIEW memory_health AS SELECT m.org, {_numbers("now()", CONCERNS)} FROM memory_items AS m GROUP BY m.org;
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
    at = f"make_timestamptz({microseconds(moment)})"
    (row,) = named_rows(
        cursor,
        f"SELECT {_numbers(at, concerns)} FROM memory_items AS m WHERE m.org = ? AND {seen}",
        [*values, org, *seen_values],
    )
    by_layer = {layer: row.pop(layer) for layer in LAYERS}
    return {"total": row["total"], "by_layer": by_layer, **{name: row[name] for name in row if name != "total"}}


def to_clean(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, moment: datetime, most: int
) -> list[JsonObject]:
    """Up to `most` expired memories that the caller may change, with their owner; those that ended first come first."""
    at = f"make_timestamptz({microseconds(moment)})"
    owned, values = "TRUE", list[str]()
    if not caller.is_operator:
        owned, values = f"m.owner IN ({', '.join('?' * len(caller.entities()))})", caller.entities()
    return named_rows(
        cursor,
        f"""SELECT m.id, m.owner, m.position FROM memory_items AS m WHERE m.org = ? AND {owned} AND {over(at)}
            ORDER BY m.expires_at, m.id LIMIT {int(most)}""",
        [org, *values],
    )

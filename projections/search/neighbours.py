"""Neighbours of hits: the items saved just before and just after a hit in its trace, among those that the caller sees.

In a conversation the words of a question often stand in the turn before the one that answers it. The trace is the one
that an item states in its source: a header that a whole import shares makes no neighbours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import duckdb
import orjson

from ledger.event import JsonObject
from ledger.events.knowledge import KnowledgeSaved
from projections.fold_kit.sql_text import text
from projections.fold_kit.visibility import read_by

_TRACE = "trace:"


class Beside(NamedTuple):
    """An item beside a hit: the position that made its version, the id of the hit, and whether it follows that one."""

    at: int
    item_id: str
    hit: str
    follows: bool


def traces_of(items: Mapping[str, JsonObject]) -> dict[str, str]:
    """The trace that each of these items states in its source, of those that state one."""
    return {item_id: trace for item_id, item in items.items() if (trace := item["source"].get("trace_id"))}


def neighbours(
    cursor: duckdb.DuckDBPyConnection, org: str, visible: Sequence[str], traces: Mapping[str, str], as_of: int | None
) -> list[Beside]:
    """The active items just before and after these items (id -> trace) among what `visible` may read."""
    source = "knowledge" if as_of is None else f"knowledge_at({int(as_of)})"
    parameters = orjson.dumps(
        {
            "tenant": org,
            "visible": list(visible),
            "hits": list(traces),
            "refs": sorted({_TRACE + trace for trace in traces.values()}),
        }
    ).decode()
    rows = cursor.execute(
        f"""
        WITH params AS (
            SELECT unnest(from_json($1,
                '{{"tenant":"VARCHAR","visible":["VARCHAR"],"hits":["VARCHAR"],"refs":["VARCHAR"]}}'))
        ),
        told AS (
            SELECT l.ref, l.entity_id AS id, l.position FROM lineage l, params
            WHERE l.event_type = {text(KnowledgeSaved.name)} AND l.relation = 'trace' AND l.org = params.tenant
                AND list_contains(params.refs, l.ref)
        ),
        seen AS (
            SELECT k.id, k.version_position FROM {source} k, params
            WHERE k.org = params.tenant AND k.status = 'active' AND NOT k.erased
                AND k.id IN (SELECT id FROM told) AND {read_by("params.visible")}
        ),
        ordered AS (
            SELECT told.id, lag(told.id) OVER w AS before, lag(s.version_position) OVER w AS before_at,
                lead(told.id) OVER w AS after, lead(s.version_position) OVER w AS after_at
            FROM told JOIN seen s ON s.id = told.id
            WINDOW w AS (PARTITION BY told.ref ORDER BY told.position)
        )
        SELECT ordered.* FROM ordered, params WHERE list_contains(params.hits, ordered.id)
        """,
        [parameters],
    ).fetchall()
    return [
        Beside(at, other, hit, follows)
        for hit, before, before_at, after, after_at in rows
        for other, at, follows in ((before, before_at, False), (after, after_at, True))
        if other is not None
    ]

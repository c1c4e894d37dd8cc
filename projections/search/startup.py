"""Queries for an agent's start: the caller's profile, and the items that have served best.

Every query has the caller's access in its SQL, as in projections/views/knowledge/ask.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import duckdb

from kledger.contract.scopes import Caller
from ledger.event import JsonObject
from projections.fold_kit.named_rows import named_rows
from projections.fold_kit.sql_text import among, text
from projections.search.ranking import HALF_LIFE_DAYS, reading_scope, scope_priority
from projections.views.access import seen_by
from projections.views.knowledge.ask import ITEM_COLUMNS, item_of, scopes_of
from projections.views.knowledge.layers import PROFILE_TYPE
from projections.views.knowledge.lives import alive
from projections.views.scope_types.ask import priorities

FRESH_WORTH = 4.0
"""Bonus of an item that changed just now, added to its quality: as much as the quality of a new item."""

_QUALITY = "(score + helpful - 2 * harmful)"


def profile_items(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, *, limit: int, min_score: int
) -> list[JsonObject]:
    """The user_profile items that the caller sees, by confidence and then by helpful count.

    When there are more than `limit`, those of the calling user stay.
    """
    own = str(caller.person())
    rows = _chosen(
        cursor,
        org,
        caller,
        min_score=min_score,
        where=f"list_contains(types, {text(PROFILE_TYPE)})",
        order=f"(owner = {text(own)} OR list_contains(scopes, {text(own)})) DESC, confidence DESC, helpful DESC",
        limit=limit,
    )
    return sorted(rows, key=lambda item: (-item["eval"]["confidence"], -item["eval"]["helpful"], item["id"]))


def best_items(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    caller: Caller,
    *,
    limit: int,
    min_score: int,
    now: datetime,
    types: Sequence[str] = (),
) -> list[JsonObject]:
    """The items of best quality and freshness that the caller sees, without profiles, the most specific scope first.

    Each has its `relevance`: quality plus up to FRESH_WORTH for freshness, halved every HALF_LIFE_DAYS.
    """
    age_days = f"greatest(0, {int(now.timestamp() * 1e6)} - epoch_us(updated_at)) / 86400e6"
    worth = f"({_QUALITY} + {FRESH_WORTH} * pow(0.5, {age_days} / {HALF_LIFE_DAYS}))"
    wanted = " OR ".join(f"list_contains(types, {text(name)})" for name in types) or "true"
    rows = _chosen(
        cursor,
        org,
        caller,
        min_score=min_score,
        where=f"NOT list_contains(types, {text(PROFILE_TYPE)}) AND ({wanted})",
        order=f"{worth} DESC",
        limit=limit,
        relevance=worth,
    )
    visible = frozenset(caller.searched_scopes())
    worths = priorities(cursor, org, caller.visible_scopes())

    def place(item: JsonObject) -> float:
        return -scope_priority(reading_scope(scopes_of(item), item["owner"], visible, worths) or "", worths)

    return sorted(rows, key=place)


def _chosen(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    caller: Caller,
    *,
    min_score: int,
    where: str,
    order: str,
    limit: int,
    relevance: str = "confidence",
) -> list[JsonObject]:
    """The active items that the caller sees, with a sufficient score and quality, in an order, with their relevance."""
    seen, values = seen_by(caller)
    lives = alive(cursor, org, "knowledge", datetime.now(UTC))
    chosen = cursor.execute(
        f"""SELECT version_position, {relevance}::DOUBLE FROM knowledge
            WHERE org = ? AND status = 'active' AND NOT erased AND score >= {int(min_score)}
                AND {_QUALITY} >= 0 AND {where} AND {seen} AND {lives}
            ORDER BY {order}, id LIMIT {int(limit)}""",
        [org, *values],
    ).fetchall()
    worth = dict(chosen)
    rows = named_rows(cursor, f"SELECT {ITEM_COLUMNS} FROM knowledge WHERE version_position IN ({among(worth)})")
    items = {row["version_position"]: item_of(row) for row in rows}
    return [{**items[at], "relevance": round(relevance, 6)} for at, relevance in chosen if at in items]

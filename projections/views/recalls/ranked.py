"""Rows of an event's ranked items: the best has rank 1; an event without items has one row without an item."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ledger.events.recall import ServedItem
from projections.fold_kit.sql_text import Value

EACH_ITEM = """LEFT JOIN LATERAL (
    SELECT unnest(d.items) AS item, generate_subscripts(d.items, 1) AS n
) ON true"""
"""Joins the items of `d` to a relation of accepted events: `n` is the rank, `item` the item."""
RANKED_COLUMNS = "n, item.id, item.version, item.relevance"


def ranked(items: Sequence[ServedItem]) -> Iterator[tuple[Value, ...]]:
    """RANKED_COLUMNS of one event: rank, id, version, relevance."""
    for rank, item in enumerate(items, 1):
        yield rank, item.id, item.version, item.relevance
    if not items:
        yield None, None, None, None

"""Which results stand before far more relevant ones, and why? The order by scope (source 002) is told of."""

from __future__ import annotations

from collections.abc import Sequence

from projections.search.ranking import Ranked

FAR = 0.5
"""A result with less than this part of another's relevance is far below it."""


def placed_by_scope(results: Sequence[Ranked]) -> dict[str, str]:
    """Why, of each result that its scope alone puts before one of far higher relevance, by item id."""
    reasons: dict[str, str] = {}
    best: Ranked | None = None
    for each in reversed(results):
        if best is not None and each.relevance < FAR * best.relevance:
            reasons[each.item_id] = (
                f"its scope {each.scope} puts it before {best.item_id}, which is far more relevant: "
                f"{best.relevance:.3g}, and {each.relevance:.3g} here"
            )
        if best is None or each.relevance > best.relevance:
            best = each
    return reasons

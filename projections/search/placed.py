"""Explanation of results that the order by scope puts before far more relevant ones."""

from __future__ import annotations

from collections.abc import Sequence

from projections.search.ranking import Ranked

FAR = 0.5
"""A result is far less relevant than another below this fraction of the other's relevance."""


def placed_by_scope(results: Sequence[Ranked]) -> dict[str, str]:
    """The reason, by item id, for each result that its scope alone puts before a far more relevant one."""
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

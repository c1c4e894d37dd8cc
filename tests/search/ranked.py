"""The whole ranking of candidates, as a search does it: put in order, and cut."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kledger.contract.scopes import PRIORITY
from projections.search.ranking import Candidate, Ranked, Standing, cut, ordered, unfit


def rank(
    candidates: Iterable[Candidate],
    standings: Mapping[str, Standing],
    visible_scopes: Iterable[str],
    *,
    top_k: int,
    min_score: float = 0.0,
    priority: Mapping[str, float] = PRIORITY,
) -> list[Ranked]:
    """The `top_k` results in their final order, of those that are fit."""
    known = ordered(candidates, standings, visible_scopes, priority=priority)
    return cut(known, lambda each: unfit(standings[each.item_id], min_score), top_k=top_k, priority=priority)

"""A reranker's order as one bounded factor of the ranking: it decides between results that are nearly equal.

Rerankers win some queries and sink others, so what is sure stays before them: a pinned result (found by its exact
words, its id, a structured field) keeps its place, and none passes it; none that is below the floor of `match` passes
one that is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

REACH = 0.15
"""The most that a score adds to or takes from a relevance."""


@dataclass(frozen=True, slots=True)
class Place:
    """What the order of a result depends on: its relevance in this query, its `match`, and whether it is pinned."""

    relevance: float
    match: float = 1.0
    pinned: bool = False


def rerank_factor(score: float | None) -> float:
    """The factor of a score between 0 and 1: 1 − REACH to 1 + REACH, and 1 where there is none."""
    return 1.0 if score is None else 1.0 + REACH * (2.0 * min(1.0, max(0.0, score)) - 1.0)


def reranked(places: Sequence[Place], scores: Sequence[float] | None, floor: float = 0.0) -> list[int]:
    """The order of the results after reranking, as indices; `places` are in their order before.

    Without scores nothing moves, nor do results beyond those that have a score.
    """
    scored = min(len(places), len(scores or ()))
    weights = [place.relevance * rerank_factor(score) for place, score in zip(places, scores or (), strict=False)]
    order: list[int] = []
    for index in range(scored):  # insertion sort: each passes those before it, one by one, as long as it may
        at = len(order)
        while (
            at > 0
            and _may_pass(places[index], places[order[at - 1]], floor)
            and (weights[index] > weights[order[at - 1]])
        ):
            at -= 1
        order.insert(at, index)
    return [*order, *range(scored, len(places))]


def _may_pass(later: Place, earlier: Place, floor: float) -> bool:
    return not (later.pinned or earlier.pinned) and not (later.match < floor <= earlier.match)

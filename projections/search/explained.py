"""Explanation of a search: the numbers that ranked its candidates, as they stand in `Ranked`, and what was left out.

Nothing is computed a second way. What the caller may not see is no candidate, so that nothing tells of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from kledger.answers.explained import (
    MOST_EXPLAINED,
    ExplainedCandidate,
    PathPlace,
    RankWeights,
    SearchExplained,
)
from kledger.contract.recall import LeftOut
from ledger.event import JsonObject
from projections.search import match, ranking
from projections.search.ranking import Ranked, scope_priority


def explained(
    considered: Sequence[Ranked],
    results: Sequence[Ranked],
    *,
    why_not: Callable[[Ranked], LeftOut | None],
    match_of: Callable[[Ranked], float],
    shown: Callable[[str], JsonObject],
    priority: Mapping[str, float],
    vector_weight: float,
    policy: str,
) -> SearchExplained:
    """Why of those `considered`, which come by worth, these are the results."""
    ranks = {each.item_id: rank for rank, each in enumerate(results, 1)}
    others = [each.item_id for each in considered if each.item_id not in ranks]
    told = {*ranks, *others[: MOST_EXPLAINED - len(ranks)]}
    return {
        "paths": {
            "keyword": _places(considered, "keyword"),
            "vector": _places(considered, "vector"),
            "recency": _places(considered, "recency"),
        },
        "candidates": [
            _candidate(
                each,
                shown(each.item_id),
                match_of(each),
                scope_priority(each.scope, priority),
                rank := ranks.get(each.item_id),
                None if rank is not None else why_not(each) or "beyond_top_k",
            )
            for each in considered
            if each.item_id in told
        ],
        "considered": len(considered),
        "weights": weights(vector_weight),
        "policy": policy,
    }


def weights(vector_weight: float) -> RankWeights:
    """The settings that rank, with that of the vectors in use."""
    return {
        "vector": vector_weight,
        "recency": ranking.RECENCY_WEIGHT,
        "lending": ranking.LENDING,
        "lent": ranking.LENT,
        "lent_back": ranking.LENT_BACK,
        "lent_match": match.LENT_MATCH,
        "quality_sway": ranking.QUALITY_SWAY,
        "usual_quality": ranking.USUAL_QUALITY,
    }


def chosen_of(told: SearchExplained, results: Sequence[JsonObject], by_a_model: bool) -> SearchExplained:
    """The explanation of those results that are the answer; a model chose them, or they are the first ones."""
    ranks = {item["id"]: rank for rank, item in enumerate(results, 1)}
    left: LeftOut = "not_chosen" if by_a_model else "beyond_top_k"

    def anew(each: ExplainedCandidate) -> ExplainedCandidate:
        rank = ranks.get(each["id"])
        return {**each, "rank": rank, "left_out": each["left_out"] or (left if rank is None else None)}

    return {**told, "candidates": [anew(each) for each in told["candidates"]]}


def _candidate(
    each: Ranked, item: JsonObject, match: float, priority: float, rank: int | None, left_out: LeftOut | None
) -> ExplainedCandidate:
    found = each.candidate
    return {
        "id": each.item_id,
        "task": item["task"],
        "version": item["version"],
        "keyword": found.keyword,
        "vector": found.vector,
        "freshness": found.recency or 0.0,
        "quality": each.quality,
        "scope": each.scope,
        "scope_priority": priority,
        "relevance": each.relevance,
        "worth": each.worth,
        "match": match,
        "beside": each.beside,
        "lent": each.lent,
        "factors": {
            "keyword": each.parts.keyword,
            "vector": each.parts.vector,
            "recency": each.parts.recency,
            "lent": each.lent,
            "quality": each.trust,
        },
        "rank": rank,
        "left_out": left_out,
    }


def _places(considered: Sequence[Ranked], path: Literal["keyword", "vector", "recency"]) -> list[PathPlace]:
    """The candidates that a path found, by its score."""
    scores = ((each.item_id, score) for each in considered if (score := getattr(each.candidate, path)) is not None)
    best = sorted(scores, key=lambda pair: -pair[1])[:MOST_EXPLAINED]
    return [{"id": item_id, "rank": rank, "score": score} for rank, (item_id, score) in enumerate(best, 1)]

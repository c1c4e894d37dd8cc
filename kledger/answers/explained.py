"""Answers about why a search answered what it did: what it considered, each number, and what was left out."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict

from kledger.contract.recall import LeftOut

MOST_EXPLAINED = 200
"""Candidates, and places of a path, in one explanation."""


class PathPlace(TypedDict):
    """One item on one path: `rank` 1 is the best by the path's own score."""

    id: str
    rank: int
    score: float


class PathPlaces(TypedDict):
    """What each path says of the candidates; every candidate has a freshness, which is its score by recency."""

    keyword: list[PathPlace]
    vector: list[PathPlace]
    recency: list[PathPlace]


class RankFactors(TypedDict):
    """What each factor does: the first four add up to the relevance, which `quality` then multiplies to the worth."""

    keyword: Annotated[float, Field(description="The keyword score, divided by the best one")]
    vector: Annotated[float, Field(description="The cosine (unfound: the least one found), times the vector weight")]
    recency: Annotated[float, Field(description="The freshness, times the recency weight")]
    lent: Annotated[float, Field(description="A share of the relevance of the item beside it")]
    quality: Annotated[float, Field(description="1 for a new item; within the sway of 1")]


class ExplainedCandidate(TypedDict):
    """One item that the search considered. `rank` is its place in the answer, or else `left_out` says why it has none.

    Candidates come by `worth`. The best that nothing speaks against are the answer, in which the more specific scope
    (`scope_priority`) comes first and the worth decides within it. No number but `match` is rounded.
    """

    id: str
    task: str
    version: int
    keyword: Annotated[float | None, Field(description="BM25; null where that path did not find it")]
    vector: Annotated[float | None, Field(description="The cosine; null where that path did not find it")]
    freshness: Annotated[float, Field(description="1 for what changed just now, halved every 30 days")]
    quality: Annotated[float, Field(description="score + helpful - 2 * harmful")]
    scope: Annotated[str, Field(description="Through which the caller sees it")]
    scope_priority: float
    relevance: float
    worth: float
    match: Annotated[float, Field(description="The share of the query that it covers, 0 to 1")]
    beside: Annotated[str | None, Field(description="The item next to it in its trace that lent it relevance")]
    lent: float
    factors: RankFactors
    rank: int | None
    left_out: LeftOut | None


class RankWeights(TypedDict):
    """The settings that ranked, by name; the policy names all of them."""

    vector: float
    recency: float
    lending: Annotated[int, Field(description="So many of the most relevant lend to what stands beside them")]
    lent: Annotated[float, Field(description="The share that goes to what follows")]
    lent_back: Annotated[float, Field(description="The share that goes to what precedes")]
    lent_match: Annotated[float, Field(description="The share of the match that goes to what stands beside it")]
    quality_sway: float
    usual_quality: Annotated[float, Field(description="The quality of a new item, whose factor is 1")]


class SearchExplained(TypedDict):
    """Why a search answered what it did, among what the caller may see.

    `considered` is how many candidates there were: the results and the best of the others are shown, 200 at most.
    """

    paths: PathPlaces
    candidates: Annotated[list[ExplainedCandidate], Field(max_length=MOST_EXPLAINED)]
    considered: int
    weights: RankWeights
    policy: str

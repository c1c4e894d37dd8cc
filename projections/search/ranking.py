"""Ranking of the candidates of all search paths, in pure functions.

`ordered` puts them in order: `fuse` makes one relevance from the paths' scores, `by_worth` orders by relevance adjusted
a little by quality. `cut` leaves out what is unfit (too low a score, a negative quality) and what is beyond the best,
and `by_scope` puts the most specific scope first. Every number on the way stays with its result, so that an order can
be explained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Literal, NamedTuple, TypeVar

from kledger.contract.recall import LeftOut
from kledger.contract.scopes import PRIORITY, PUBLIC
from kledger.contract.words import EVERYTHING
from projections.vectors.embedding.weights import HASHED_VECTOR_WEIGHT

Fusion = Literal["scores", "rrf"]
R = TypeVar("R")

RECENCY_WEIGHT = 0.02  # of a freshness (0..1) relative to the best keyword score, which is 1
HALF_LIFE_DAYS = 30.0  # a freshness is halved in so many days

QUALITY_SWAY = 0.05  # the largest effect of quality on a relevance, up or down: five percent
USUAL_QUALITY = 4.0  # of a new item: score 3, helpful 1
LENDING = 10  # so many of the most relevant items lend to those that stand beside them
# Of the relevance of the item beside; measured with bench/turns.py: .3 to .8 find the same. What follows is a little
# more: an answer comes after its question.
LENT, LENT_BACK = 0.4, 0.36
_RRF_K = 60  # the constant of the paper on reciprocal rank fusion (Cormack and others, 2009)


Beside = Mapping[str, Collection[tuple[str, bool]]]
"""For an item, those that it stands beside in a trace; True where it follows that one."""


class Candidate(NamedTuple):
    """An item found by at least one path. A score is None where that path did not find it.

    `version_position` is the position that made the version; `keyword` is a BM25 score (0 and up), `vector` a
    cosine (-1..1), `recency` a freshness (0..1, see `freshness`).
    """

    item_id: str
    version_position: int
    keyword: float | None = None
    vector: float | None = None
    recency: float | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """An item's data from the view: evaluation, readers (scopes and ACL, owner), time of the last change."""

    item_id: str
    score: float
    helpful: int
    harmful: int
    scopes: Sequence[str]
    updated_at: datetime
    owner: str = ""


class Parts(NamedTuple):
    """What each path adds to a relevance."""

    keyword: float
    vector: float
    recency: float


NO_PARTS = Parts(0.0, 0.0, 0.0)


class Relevant(NamedTuple):
    """A candidate and its relevance, which is comparable within one search only: the sum of `parts` and of what the
    item `beside` it `lent`."""

    candidate: Candidate
    relevance: float
    beside: str | None = None
    parts: Parts = NO_PARTS
    lent: float = 0.0


class Ranked(NamedTuple):
    """A result: the item, the values that it was ordered by, and the scope through which the caller sees it.

    `beside` is the hit that lent it relevance, if one did (see `lend`); `parts` and `lent` add up to the relevance.
    """

    item_id: str
    version_position: int
    relevance: float
    quality: float
    scope: str
    candidate: Candidate
    beside: str | None = None
    parts: Parts = NO_PARTS
    lent: float = 0.0

    @property
    def trust(self) -> float:
        """The factor of its quality: within QUALITY_SWAY of 1."""
        return 1 + QUALITY_SWAY * sway(self.quality)

    @property
    def worth(self) -> float:
        """What it is ordered by: its relevance, adjusted for its quality."""
        return self.relevance * self.trust


def ordered(
    candidates: Iterable[Candidate],
    standings: Mapping[str, Standing],
    visible_scopes: Iterable[str],
    *,
    vector_weight: float = HASHED_VECTOR_WEIGHT,
    priority: Mapping[str, float] = PRIORITY,
    beside: Beside | None = None,
) -> list[Ranked]:
    """Every candidate that the caller may read, by worth.

    A candidate without a standing (removed since it was indexed), or that the caller may not read, is left out.
    `beside` are the items beside each.
    """
    visible = frozenset(visible_scopes)
    # Filtered before fusion, so that invisible items do not influence the relevance of others.
    read_through: dict[tuple[tuple[str, ...], str], str | None] = {}  # most items share theirs with others
    scopes: dict[str, str] = {}
    for standing in standings.values():
        readers = (tuple(standing.scopes), standing.owner)
        if readers not in read_through:
            read_through[readers] = reading_scope(*readers, visible, priority)
        if (scope := read_through[readers]) is not None:
            scopes[standing.item_id] = scope
    results = []
    fused = fuse((c for c in candidates if c.item_id in scopes), vector_weight=vector_weight)
    for each in lend(fused, beside or {}):
        standing = standings[each.candidate.item_id]
        results.append(
            Ranked(
                item_id=standing.item_id,
                version_position=each.candidate.version_position,
                relevance=each.relevance,
                quality=quality(standing.score, standing.helpful, standing.harmful),
                scope=scopes[standing.item_id],
                candidate=each.candidate,
                beside=each.beside,
                parts=each.parts,
                lent=each.lent,
            )
        )
    return by_worth(results)


def cut(
    results: Iterable[Ranked],
    why_not: Callable[[Ranked], LeftOut | None],
    *,
    top_k: int,
    priority: Mapping[str, float] = PRIORITY,
) -> list[Ranked]:
    """The `top_k` best in their final order, without those that `why_not` names a reason for.

    It is asked of the best until there are `top_k`. The cut is by worth; scope priority orders only what is left, so
    that a specific but irrelevant item displaces no other.
    """
    fit = (each for each in results if why_not(each) is None)
    return by_scope(list(islice(fit, top_k)), priority)


def with_a_sure_one(results: Iterable[R], is_sure: Callable[[R], bool], most: int) -> list[R]:
    """The `most` first results, of which one is sure: else the first one that is takes the last place. None without."""
    best: list[R] = []
    sure = False
    for each in results:
        if len(best) < most:
            best.append(each)
            sure = sure or is_sure(each)
        elif sure:
            return best
        elif is_sure(each):
            return [*best[:-1], each]
    return best if sure else []


def fuse(
    candidates: Iterable[Candidate],
    *,
    fusion: Fusion = "scores",
    vector_weight: float = HASHED_VECTOR_WEIGHT,
) -> list[Relevant]:
    """One relevance for each candidate, most relevant first; the sort is stable.

    "scores" adds calibrated scores: keyword / the best keyword + weight * cosine + weight * freshness. An item that the
    vector path did not find gets the lowest cosine of those that it did find, which is its upper bound: so an item
    found by one path only has no disadvantage. "rrf" (reciprocal rank fusion) adds 1 / (60 + rank) over the paths; it
    is there for comparison: with it, a weak path degrades a strong one.
    """
    items = list(candidates)
    parts = _by_ranks(items) if fusion == "rrf" else _by_scores(items, vector_weight)
    relevant = [
        Relevant(item, each.keyword + each.vector + each.recency, parts=each)
        for item, each in zip(items, parts, strict=True)
    ]
    return sorted(relevant, key=lambda each: -each.relevance)


def lend(relevant: Sequence[Relevant], beside: Beside) -> list[Relevant]:
    """What stands beside one of the LENDING best gets a share of its relevance in addition to its own, once.

    LENT of the one that it follows, LENT_BACK of the one that it precedes.
    """
    if not beside:
        return list(relevant)
    lending = {each.candidate.item_id: each.relevance for each in relevant[:LENDING]}
    lent = []
    for each in relevant:
        shares = [
            ((LENT if follows else LENT_BACK) * lending.get(name, 0.0), name)
            for name, follows in beside.get(each.candidate.item_id, ())
        ]
        share, lender = max(shares, default=(0.0, ""))
        if share > 0:
            lent.append(each._replace(relevance=each.relevance + share, beside=lender, lent=share))
        else:
            lent.append(each)
    return sorted(lent, key=lambda each: -each.relevance)


def quality(score: float, helpful: int, harmful: int) -> float:
    """An item's quality: score + helpful - 2 * harmful."""
    return score + helpful - 2.0 * harmful


def unfit(standing: Standing, min_score: float) -> LeftOut | None:
    """Why an item may be no result: its score is too low, or its quality is negative; None where it may."""
    if standing.score < min_score:
        return "min_score"
    return "negative_quality" if quality(standing.score, standing.helpful, standing.harmful) < 0 else None


def by_worth(results: Iterable[Ranked]) -> list[Ranked]:
    """Most relevant first, each relevance adjusted for quality by at most QUALITY_SWAY; the sort is stable."""
    return sorted(results, key=lambda each: -each.worth)


def by_scope(results: Iterable[Ranked], priority: Mapping[str, float] = PRIORITY) -> list[Ranked]:
    """The most specific scope first; the sort is stable."""
    return sorted(results, key=lambda each: -scope_priority(each.scope, priority))


def strongest_scope(
    scopes: Iterable[str], visible: Iterable[str], priority: Mapping[str, float] = PRIORITY
) -> str | None:
    """The most specific of an item's scopes among those that the caller sees; None when there is none."""
    seen = frozenset(visible)
    shared = sorted(scope for scope in scopes if scope in seen)
    return max(shared, key=lambda scope: scope_priority(scope, priority), default=None)


def reading_scope(
    scopes: Iterable[str], owner: str, visible: Iterable[str], priority: Mapping[str, float] = PRIORITY
) -> str | None:
    """The most specific of the scopes through which the caller may read an item; None when it may not.

    The owner counts only where no other scope does: owning an item does not rank it higher. A caller who may read
    everything reads the rest through EVERYTHING.
    """
    seen = frozenset(visible)
    if (scope := strongest_scope(scopes, seen, priority)) is not None:
        return scope
    return owner if owner in seen else EVERYTHING if EVERYTHING in seen else None


def scope_priority(scope: str, priority: Mapping[str, float] = PRIORITY) -> float:
    """How specific a scope is: user > project > agent > team > org > public; 0 for an unknown kind.

    EVERYTHING is as specific as `public`.
    """
    return priority.get(PUBLIC if scope == EVERYTHING else scope.partition(":")[0], 0)


def freshness(updated_at: datetime, now: datetime) -> float:
    """1 for a change just now, half of it after each HALF_LIFE_DAYS. Future times count as now."""
    age_days = max(0.0, (now - updated_at).total_seconds() / 86_400)
    return float(0.5 ** (age_days / HALF_LIFE_DAYS))


def _by_scores(candidates: Sequence[Candidate], vector_weight: float) -> list[Parts]:
    best = max((each.keyword or 0.0 for each in candidates), default=0.0)
    farthest = min((each.vector for each in candidates if each.vector is not None), default=0.0)
    return [
        Parts(
            (each.keyword or 0.0) / best if best > 0 else 0.0,
            vector_weight * (farthest if each.vector is None else each.vector),
            RECENCY_WEIGHT * (each.recency or 0.0),
        )
        for each in candidates
    ]


def _by_ranks(candidates: Sequence[Candidate]) -> list[Parts]:
    columns = []
    for path in Parts._fields:
        scores = [(getattr(each, path), place) for place, each in enumerate(candidates)]
        ranked = sorted((pair for pair in scores if pair[0] is not None), key=lambda pair: -pair[0])
        added = [0.0] * len(candidates)
        for place_in_path, (_, place) in enumerate(ranked):
            added[place] = 1.0 / (_RRF_K + place_in_path + 1)
        columns.append(added)
    return list(map(Parts, *columns))


def sway(worth: float) -> float:
    """Quality scaled to between -1 and 1, 0 for a new item; saturates, so that the tenth case counts less."""
    return math.tanh((worth - USUAL_QUALITY) / 8)

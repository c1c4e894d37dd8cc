"""Search: candidates from the vector process, their items from the view, and the ranking of both."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import NamedTuple

from kledger.answers.parts import Degraded
from kledger.contract.recall import LeftOut, floor_of
from kledger.contract.scopes import PRIORITY, further_types
from kledger.contract.words import EVERYTHING
from ledger.event import JsonObject
from projections.engine.view import View
from projections.search.asked import RECENT, Asked
from projections.search.explained import explained
from projections.search.items import Items, Then, fits, items_then, seen_count
from projections.search.known import Known
from projections.search.lately import Lately
from projections.search.match import Heard, Matches, Passages
from projections.search.neighbours import neighbours
from projections.search.placed import placed_by_scope
from projections.search.policy import policy
from projections.search.ranking import (
    LENDING,
    Beside,
    Candidate,
    Ranked,
    cut,
    freshness,
    ordered,
    unfit,
    with_a_sure_one,
)
from projections.search.remembered import RememberedItems, read_passages
from projections.vectors.embedding.weights import HASHED_VECTOR_WEIGHT
from projections.vectors.feed import VectorFeed
from projections.vectors.store.port import Found, SearchOptions
from projections.views.knowledge.lives import over_among
from projections.views.lineage.ask import time_of
from projections.views.scope_types.ask import priorities

MOST_FLOORS = 1_000
"""Callers whose floor is remembered until an item changes."""
LATELY_SECONDS = 60.0
"""Time after a search for which new items are read ahead for the next one: where nobody searches, nobody needs them."""


class Scores(NamedTuple):
    """How the two paths of the vector process score a version; None where a path has not found it."""

    keyword: float | None
    vector: float | None


_NO_SCORES = Scores(None, None)


class Searcher:
    """Search over one node's knowledge: candidates from the vector process, everything else from the view."""

    def __init__(self, view: View, feed: VectorFeed) -> None:
        self._view = view
        self._feed = feed
        self._lately = Lately(view)
        self._items = RememberedItems(view)
        self._files = 0
        self._searched = float("-inf")
        self._floors: dict[tuple[str, ...], tuple[tuple[int, int], float]] = {}
        feed.fed = self._learn

    async def search(self, asked: Asked) -> list[JsonObject]:
        """Up to `top_k` active items that one of the scopes in `visible` may read, best first, each with its `match`.

        Left out are items scored below `min_score`, items with a negative quality, items that `only` excludes, items
        that match less than `min_match`, all of them where none comes to `sure`, and items that `readable` does not
        return; the latter before ranking, so that they do not influence the relevance of others. Raises
        VectorProcessGone.
        """
        self._searched = time.monotonic()
        now = await self._moment(asked)
        heard = Heard(asked.query)
        hits = await self._hits(asked, heard)
        scores = {each.valid_from: Scores(each.keyword, each.vector) for each in hits}
        found, beside = await self._found(asked, [each.valid_from for each in hits], scores, now)
        by_id = {item.item_id: item for item in found.items}
        read: dict[str, Passages] = {}
        matches = Matches(
            heard.weighed,
            read,
            lambda item_id: scores.get(by_id[item_id].at, _NO_SCORES).vector,
            meaning=self._feed.vector_weight > HASHED_VECTOR_WEIGHT,
            readers_of=lambda item_id: " ".join((by_id[item_id].standing.owner, *by_id[item_id].standing.scopes)),
        )
        why_not = _why_not(asked, by_id, matches)
        priority = await self._priorities(asked.org, asked.visible)
        considered = ordered(
            _candidates(found.items, scores, now),
            {item.item_id: item.standing for item in found.items},
            asked.visible,
            vector_weight=self._feed.vector_weight,
            priority=priority,
            beside=beside,
        )

        async def read_of(results: Sequence[Ranked]) -> None:
            named = {item_id for each in results for item_id in (each.item_id, each.beside) if item_id}
            read.update(await self._passages([by_id[item_id] for item_id in named - read.keys()], found.then))

        def is_sure(each: Ranked) -> bool:
            return not asked.sure or matches.of(each.item_id, each.beside) >= asked.sure

        looked_at: Sequence[Ranked] = considered
        if asked.explain is not None:
            await read_of(considered)
        elif asked.min_match:
            looked_at = await enough_read(considered, why_not, read_of, asked.top_k, is_sure)
        if asked.sure:
            fit = (each for each in looked_at if why_not(each) is None)
            looked_at = with_a_sure_one(fit, is_sure, asked.top_k)
            if not looked_at:
                why_not = _left_out_all(why_not)
        ranked = cut(looked_at, why_not, top_k=asked.top_k, priority=priority)
        await read_of(ranked)
        shown = await self._shown([by_id[each.item_id] for each in ranked], found.then)
        ranked = [each for each in ranked if each.item_id in shown]
        if asked.explain is not None:
            every = await self._shown(found.items, found.then)
            asked.explain(
                explained(
                    [each for each in considered if each.item_id in every],
                    ranked,
                    why_not=why_not,
                    match_of=lambda each: matches.of(each.item_id, each.beside),
                    shown=every.__getitem__,
                    priority=priority,
                    vector_weight=self._feed.vector_weight,
                    policy=self.policy,
                )
            )
        return _results(ranked, shown, matches)

    async def _found(
        self, asked: Asked, positions: list[int], scores: Mapping[int, Scores], now: datetime
    ) -> tuple[Items, Beside]:
        """The items that may be results, of these versions and beside them, and for each the ones it stands beside."""
        found = await self._items_of(asked, positions, now)
        beside: Beside = {}
        if asked.paths == "fused" and (traces := _traces_of_the_best(found.items, scores)):
            found, beside = await self._with_neighbours(asked, found, traces, now)
        if asked.readable is not None and found.items:
            readable_ids = await asked.readable([item.item_id for item in found.items])
            found = found._replace(items=[item for item in found.items if item.item_id in readable_ids])
        return found, beside

    async def _passages(self, items: Sequence[Known], then: Then) -> dict[str, Passages]:
        """The passages of items, by id."""
        cache = self._cache()
        read = await cache.passages([item for item in items if item.at not in then])
        read |= await read_passages({item.at: then[item.at] for item in items if item.at in then}, cache.reading)
        return {item.item_id: read.get(item.at, ()) for item in items}

    async def _shown(self, items: Sequence[Known], then: Then) -> dict[str, JsonObject]:
        """Items as JSON, as the interfaces return them, by id; without those that an erasure has taken meanwhile."""
        shown = {**then, **await self._cache().shown([item for item in items if item.at not in then])}
        return {item.item_id: shown[item.at] for item in items if item.at in shown}

    async def _hits(self, asked: Asked, heard: Heard) -> list[Found]:
        """What the paths of the vector process find."""
        if asked.paths == "recency":
            return []
        most = max(asked.candidates, 2 * asked.top_k)
        options = SearchOptions(
            list(asked.visible),
            list(asked.types or []),
            most,
            asked.as_of,
            dict(asked.only or {}),
            versions=asked.versions,
        )
        searched = heard.searched
        # weighed while the vector process searches
        answer = await self._feed.searches.answer(searched, options, asked.paths, lambda: heard.weighed)
        if answer.lacking is not None and asked.lacking is not None:
            reason = f"{answer.lacking}: the answer goes by words and freshness; see /health for the endpoint"
            asked.lacking(Degraded(part="embeddings", reason=reason, position=self._feed.applied))
        found = answer.found
        if asked.since is not None and not has_the_best_since(asked.since, found, most):
            fresh = await self._feed.searches.answer(
                searched, replace(options, limit=RECENT, since=asked.since), asked.paths
            )
            known = {each.valid_from for each in found}
            found = [*found, *(each for each in fresh.found if each.valid_from not in known)]
        return found

    @property
    def lately(self) -> Lately:
        """What recalls ask of the view beside this."""
        return self._lately

    @property
    def policy(self) -> str:
        """The name of the settings that rank."""
        return policy(self._feed.model)

    async def _moment(self, asked: Asked) -> datetime:
        """What a clock says when the search is of."""
        if asked.moment is None and asked.as_of is not None:
            asked = replace(asked, moment=await self._view.ask(time_of, asked.as_of))
        return asked.moment or datetime.now(UTC)

    async def _items_of(self, asked: Asked, positions: list[int], now: datetime) -> Items:
        """The items of these versions, and for the recency path the latest ones, without memories that are over."""
        recent = max(RECENT, asked.top_k) if asked.paths == "recency" else 0
        found: Items
        if asked.as_of is not None or recent:
            only, wanted = asked.only or {}, list(asked.types or [])
            about = (asked.org, list(asked.visible), wanted, positions, asked.as_of, recent, only, asked.versions)
            found = await self._view.ask(items_then, *about)
        else:
            cache = self._cache()
            found = Items(await cache.active(asked.org, positions), {})
            cache.fill()
        if short := [item.item_id for item in found.items if item.is_short]:
            over = await self._view.ask(over_among, asked.org, short, now, asked.as_of)
            found = found._replace(items=[item for item in found.items if item.item_id not in over])
        return found

    async def _with_neighbours(
        self, asked: Asked, found: Items, traces: Mapping[str, str], now: datetime
    ) -> tuple[Items, Beside]:
        """The items and those beside the best of them; and for each item, the ones that it stands beside."""
        others = await self._view.ask(neighbours, asked.org, list(asked.visible), traces, asked.as_of)
        here = {item.at for item in found.items}
        more = await self._items_of(asked, sorted({each.at for each in others} - here), now)
        versions = None if asked.versions is None else frozenset(asked.versions)
        fit = [item for item in more.items if fits(item, asked) and (versions is None or item.at in versions)]
        beside: dict[str, list[tuple[str, bool]]] = {}
        for each in others:
            beside.setdefault(each.item_id, []).append((each.hit, each.follows))
        return Items([*found.items, *fit], {**found.then, **more.then}), beside

    def state(self) -> Hashable | None:
        """What results follow from beside the question: it is another one once an item, its readers or its vector has
        changed. None while the vectors lag behind, or where another node makes them."""
        self._cache()
        position = self._view.instance.items_position
        if self._feed.applied < position or not self._feed.whole:
            return None
        return self._files, position, self._feed.embedded

    async def floor(self, org: str, visible: Sequence[str]) -> float:
        """The least match of an answer among what these scopes may read."""
        key = (org, *sorted(set(visible)))
        self._cache()
        now = (self._files, self._view.instance.items_position)
        if (kept := self._floors.get(key)) is not None and kept[0] == now:
            return kept[1]
        floor = floor_of(await self._view.ask(seen_count, org, list(visible)))
        if len(self._floors) >= MOST_FLOORS:
            self._floors.clear()
        self._floors[key] = (now, floor)
        return floor

    async def _priorities(self, org: str, visible: Sequence[str]) -> Mapping[str, float]:
        if not further_types(set(visible) - {EVERYTHING}):  # the usual case, without a query
            return PRIORITY
        return await self._view.ask(priorities, org, visible)

    def _cache(self) -> RememberedItems:
        """The cache of the live file; a new one after a swap, as a rebuilt file may lack erased items."""
        if self._items.instance is not self._view.instance:
            self._items = RememberedItems(self._view)
            self._files += 1
        return self._items

    async def _learn(self, after: int, upto: int) -> None:
        """Warm the cache with the items that became searchable, or leave them to the next search."""
        cache = self._cache()
        if time.monotonic() - self._searched < LATELY_SECONDS:
            await cache.learn(after, upto)
        else:
            cache.put_off(after)

    @property
    def position(self) -> int:
        """The log position up to which items are searchable."""
        return self._feed.applied

    async def wait_for(self, position: int, timeout: float) -> None:
        """Return once the events up to `position` are searchable. Raises ViewBehind."""
        await self._feed.wait_for(position, timeout)


def has_the_best_since(since: int, found: Sequence[Found], most: int) -> bool:
    """Whether the `most` best of each path have the RECENT best that were made after a position, or there are no more.

    A search for these alone costs more the more of the items are among them, and then it finds nothing else.
    """
    by_words = [each for each in found if each.keyword is not None]
    by_vector = [each for each in found if each.vector is not None]
    return all(
        len(hits) < most or sum(each.valid_from > since for each in hits) >= RECENT for hits in (by_words, by_vector)
    )


def _traces_of_the_best(items: Sequence[Known], scores: Mapping[int, Scores]) -> dict[str, str]:
    """The traces of the items that the keyword path or, without a word in common, the vector path ranks best."""
    if all(item.trace is None for item in items):
        return {}

    def placed(item: Known) -> tuple[float, float]:
        keyword, vector = scores.get(item.at, _NO_SCORES)
        return -(keyword or 0.0), -(vector or 0.0)

    best = sorted(items, key=placed)[: 2 * LENDING]
    return {item.item_id: item.trace for item in best if item.trace}


def _candidates(items: Sequence[Known], scores: Mapping[int, Scores], now: datetime) -> list[Candidate]:
    """The items as they are ranked, the best by their words first."""
    candidates = [
        Candidate(item.item_id, item.at, *scores.get(item.at, _NO_SCORES), freshness(item.standing.updated_at, now))
        for item in items
    ]
    return sorted(candidates, key=lambda each: (-(each.keyword or 0), each.version_position))


def _why_not(asked: Asked, by_id: Mapping[str, Known], matches: Matches) -> Callable[[Ranked], LeftOut | None]:
    """What says why a candidate is no result; None where it may be one."""

    def why_not(each: Ranked) -> LeftOut | None:
        item = by_id[each.item_id]
        if (fault := unfit(item.standing, asked.min_score)) is not None:
            return fault
        if asked.layers is not None and item.layer not in asked.layers:
            return "other_layer"
        if asked.min_match and matches.of(each.item_id, each.beside) < asked.min_match:
            return "min_match"
        return None

    return why_not


async def enough_read(
    considered: Sequence[Ranked],
    why_not: Callable[[Ranked], LeftOut | None],
    read_of: Callable[[Sequence[Ranked]], Awaitable[None]],
    top_k: int,
    is_sure: Callable[[Ranked], bool] = lambda _: True,
) -> Sequence[Ranked]:
    """Read the best, whose match says whether they may be results, until `top_k` of them may and one of these is sure,
    or all are read; returns those that were read."""
    fit = at = 0
    sure = False
    while at < len(considered) and (fit < top_k or not sure):
        part = considered[at : at + (top_k - fit if fit < top_k else top_k)]
        await read_of(part)
        fitting = [each for each in part if why_not(each) is None]
        fit += len(fitting)
        sure = sure or any(map(is_sure, fitting))
        at += len(part)
    return considered[:at]


def _left_out_all(why_not: Callable[[Ranked], LeftOut | None]) -> Callable[[Ranked], LeftOut | None]:
    """What says why a candidate is no result where none of them is sure."""
    return lambda each: why_not(each) or "min_match"


def _results(ranked: Sequence[Ranked], shown: Mapping[str, JsonObject], matches: Matches) -> list[JsonObject]:
    """Items as the interfaces return them, with what ranked them."""
    why = placed_by_scope(ranked)
    return [
        {
            **shown[each.item_id],
            "quality_score": each.quality,
            "relevance": round(each.relevance, 6),
            "match": matches.of(each.item_id, each.beside),
        }
        | ({"why": why[each.item_id]} if each.item_id in why else {})
        | ({"beside": each.beside} if each.beside is not None else {})
        for each in ranked
    ]

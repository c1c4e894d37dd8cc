"""Search: candidates from the vector process, their items from the view, and the ranking of both."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

import duckdb
import orjson

from kledger.answers.explained import SearchExplained
from kledger.answers.parts import Degraded
from kledger.contract.recall import LeftOut, floor_of
from kledger.contract.scopes import PRIORITY, further_types
from kledger.contract.words import EVERYTHING, RecallLayer, RecallPath
from ledger.event import JsonObject
from projections.engine.view import View
from projections.fold_kit.named_rows import named_rows
from projections.fold_kit.sql_text import among
from projections.fold_kit.visibility import read_by
from projections.search.explained import explained
from projections.search.known import Known, item_then
from projections.search.match import Matches, Passages, Weighed, weighed
from projections.search.neighbours import neighbours
from projections.search.placed import placed_by_scope
from projections.search.policy import policy
from projections.search.ranking import LENDING, Candidate, Ranked, cut, freshness, ordered, unfit
from projections.search.remembered import RememberedItems, read_passages
from projections.vectors.embedding.weights import HASHED_VECTOR_WEIGHT
from projections.vectors.feed import VectorFeed
from projections.vectors.store.port import Found, Only, SearchOptions
from projections.views.knowledge.ask import ITEM_COLUMNS, item_of
from projections.views.knowledge.lives import over_among
from projections.views.lineage.ask import time_of
from projections.views.scope_types.ask import priorities

# Candidates of each path; at least twice as many as results. Measured with 20, 30 and 50: the same quality.
LEAST_CANDIDATES = 20
RECENT = 5
MOST_FLOORS = 1_000
"""Callers whose floor is remembered until an item changes."""
LATELY_SECONDS = 60.0
"""Time after a search for which new items are read ahead for the next one: where nobody searches, nobody needs them."""
_NO_SCORES = (None, None)
_COUNTED_UPTO = 20_000
"""More items than this raise the floor no more."""

Readable = Callable[[list[str]], Awaitable[set[str]]]
"""Returns those of the given item ids that the caller may read now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A search. `as_of` is a log position; `lacking` is called where the result is degraded.

    `moment` is what a clock says then: how old an item is and whether a memory is over go by it. Without one it is the
    time that the log kept for the position, and for the present now.

    With `since`, a log position, the RECENT best versions made after it are candidates too. `layers` reads these alone.
    `explain` is called with why the results are what they are. Each path has `candidates` at least: where `readable`
    leaves many out, more are needed. `only` names columns of an item (owner, visibility); `versions` are the
    positions that made the only versions which may be found.
    """

    org: str
    query: str
    visible: Sequence[str]
    top_k: int = 5
    min_score: int = 3
    types: Sequence[str] | None = None
    as_of: int | None = None
    moment: datetime | None = None
    paths: RecallPath = "fused"
    readable: Readable | None = None
    lacking: Callable[[Degraded], None] | None = None
    only: Only | None = None
    versions: Sequence[int] | None = None
    min_match: float = 0.0
    since: int | None = None
    layers: Collection[RecallLayer] | None = None
    explain: Callable[[SearchExplained], None] | None = None
    candidates: int = LEAST_CANDIDATES


class Searcher:
    """Search over one node's knowledge: candidates from the vector process, everything else from the view."""

    def __init__(self, view: View, feed: VectorFeed) -> None:
        self._view = view
        self._feed = feed
        self._items = RememberedItems(view)
        self._files = 0
        self._searched = float("-inf")
        self._floors: dict[tuple[str, ...], tuple[tuple[int, int], float]] = {}
        feed.fed = self._learn

    async def search(self, asked: Asked) -> list[JsonObject]:
        """Up to `top_k` active items that one of the scopes in `visible` may read, best first, each with its `match`.

        Left out are items scored below `min_score`, items with a negative quality, items that `only` excludes, items
        that match less than `min_match`, and items that `readable` does not return; the latter before ranking, so that
        they do not influence the relevance of others. Raises VectorProcessGone.
        """
        self._searched = time.monotonic()
        now = await self._moment(asked)
        weights: list[Weighed] = []  # of the words, made while the vector process searches
        hits = await self._hits(asked, lambda: weights.append(weighed(asked.query)))
        scores = {each.valid_from: (each.keyword, each.vector) for each in hits}
        found = await self._items_of(asked, [each.valid_from for each in hits], now)
        beside: dict[str, list[tuple[str, bool]]] = {}
        if asked.paths == "fused" and (traces := _traces_of_the_best(found.items, scores)):
            found, beside = await self._with_neighbours(asked, found, traces, now)
        items = found.items
        if asked.readable is not None and items:
            readable_ids = await asked.readable([item.item_id for item in items])
            items = [item for item in items if item.item_id in readable_ids]
        candidates = [
            Candidate(item.item_id, item.at, *scores.get(item.at, _NO_SCORES), freshness(item.standing.updated_at, now))
            for item in items
        ]
        by_id = {item.item_id: item for item in items}
        read: dict[str, Passages] = {}
        matches = Matches(
            weights[0] if weights else weighed(asked.query),
            read.__getitem__,
            lambda item_id: scores.get(by_id[item_id].at, _NO_SCORES)[1],
            meaning=self._feed.vector_weight > HASHED_VECTOR_WEIGHT,
        )

        def why_not(each: Ranked) -> LeftOut | None:
            item = by_id[each.item_id]
            if (fault := unfit(item.standing, asked.min_score)) is not None:
                return fault
            if asked.layers is not None and item.layer not in asked.layers:
                return "other_layer"
            below = asked.min_match and matches.of(each.item_id, each.beside) < asked.min_match
            return "min_match" if below else None

        priority = await self._priorities(asked.org, asked.visible)
        every_match = bool(asked.min_match) or asked.explain is not None
        if every_match:
            read |= await self._passages(items, found.then)
        considered = ordered(
            sorted(candidates, key=lambda each: (-(each.keyword or 0), each.version_position)),
            {item.item_id: item.standing for item in items},
            asked.visible,
            vector_weight=self._feed.vector_weight,
            priority=priority,
            beside=beside,
        )
        ranked = cut(considered, why_not, top_k=asked.top_k, priority=priority)
        if not every_match:
            told = {item_id: by_id[item_id] for each in ranked for item_id in (each.item_id, each.beside) if item_id}
            read |= await self._passages(list(told.values()), found.then)
        shown = await self._shown([by_id[each.item_id] for each in ranked], found.then)
        ranked = [each for each in ranked if each.item_id in shown]
        if asked.explain is not None:
            every = await self._shown(items, found.then)
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

    async def _hits(self, asked: Asked, meanwhile: Callable[[], None]) -> list[Found]:
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
        answer = await self._feed.search(asked.query, options, asked.paths, meanwhile)
        if answer.lacking is not None and asked.lacking is not None:
            reason = f"{answer.lacking}: the answer goes by words and freshness; see /health for the endpoint"
            asked.lacking(Degraded(part="embeddings", reason=reason, position=self._feed.applied))
        found = answer.found
        if asked.since is not None:
            fresh = await self._feed.search(asked.query, replace(options, limit=RECENT, since=asked.since), asked.paths)
            known = {each.valid_from for each in found}
            found = [*found, *(each for each in fresh.found if each.valid_from not in known)]
        return found

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
    ) -> tuple[Items, dict[str, list[tuple[str, bool]]]]:
        """The items and those beside the best of them; and for each item, the ones that it stands beside."""
        others = await self._view.ask(neighbours, asked.org, list(asked.visible), traces, asked.as_of)
        here = {item.at for item in found.items}
        more = await self._items_of(asked, sorted({each.at for each in others} - here), now)
        versions = None if asked.versions is None else frozenset(asked.versions)
        fit = [item for item in more.items if _fits(item, asked) and (versions is None or item.at in versions)]
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


Then = Mapping[int, JsonObject]
"""Items that were read whole, as the interfaces return them, by the position that made their version."""


class Items(NamedTuple):
    """Items that may be results; `then` has them whole where the search is as of a position, or by recency."""

    items: Sequence[Known]
    then: Then


def _traces_of_the_best(
    items: Sequence[Known], scores: Mapping[int, tuple[float | None, float | None]]
) -> dict[str, str]:
    """The traces of the items that the keyword path or, without a word in common, the vector path ranks best."""
    if all(item.trace is None for item in items):
        return {}

    def placed(item: Known) -> tuple[float, float]:
        keyword, vector = scores.get(item.at, _NO_SCORES)
        return -(keyword or 0.0), -(vector or 0.0)

    best = sorted(items, key=placed)[: 2 * LENDING]
    return {item.item_id: item.trace for item in best if item.trace}


def _fits(item: Known, asked: Asked) -> bool:
    """Whether an item that the paths did not find has the types and fields that are asked for."""
    only = asked.only or {}
    owners, labels = only.get("owner"), only.get("visibility")
    return (
        (not asked.types or not set(asked.types).isdisjoint(item.types))
        and (not owners or item.standing.owner in owners)
        and (not labels or item.visibility in labels)
    )


def seen_count(cursor: duckdb.DuckDBPyConnection, org: str, visible: list[str]) -> int:
    """The number of active items that these scopes may read, at most _COUNTED_UPTO."""
    seen = "TRUE" if EVERYTHING in visible else read_by("$visible")
    values: dict[str, object] = {"org": org} | ({} if EVERYTHING in visible else {"visible": visible})
    (count,) = cursor.execute(
        f"""SELECT count(*) FROM (
            SELECT 1 FROM knowledge_versions
            WHERE org = $org AND valid_to IS NULL AND status = 'active' AND NOT erased AND {seen} LIMIT {_COUNTED_UPTO}
        )""",
        values,
    ).fetchone() or (0,)
    return int(count)


def items_then(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    visible: list[str],
    types: list[str],
    version_positions: list[int],
    as_of: int | None,
    recent: int,
    only: Only | None = None,
    versions: Sequence[int] | None = None,
) -> Items:
    """The items of these versions, and the `recent` latest items, as of a position (None: now).

    A version that the vector store still finds although the view has a newer one is left out.
    """
    source = "knowledge" if as_of is None else f"knowledge_at({int(as_of)})"
    # One bound value: the driver takes about 0.1 ms for each.
    narrowed = {field: values for field, values in (only or {}).items() if values}
    parameters = orjson.dumps(
        {"tenant": org, "visible": visible, "wanted": types, "versions": list(versions or ())}
        | {f"only_{field}": values for field, values in narrowed.items()}
    ).decode()
    where = f"""org = params.tenant AND status = 'active' AND NOT erased
        AND {"TRUE" if EVERYTHING in visible else read_by("params.visible")}
        AND (len(params.wanted) = 0 OR list_has_any(types, params.wanted))
        {"" if versions is None else "AND version_position IN (SELECT unnest(versions) FROM params)"}
        {"".join(f"AND {field} IN (SELECT unnest(only_{field}) FROM params)" for field in narrowed)}"""
    queries = []
    if version_positions:
        slots = among(version_positions)
        queries.append(f"SELECT {ITEM_COLUMNS} FROM {source}, params WHERE version_position IN ({slots}) AND {where}")
    if recent:
        queries.append(
            f"(SELECT {ITEM_COLUMNS} FROM {source}, params WHERE {where}"
            f" ORDER BY updated_at DESC, version_position DESC LIMIT {int(recent)})"
        )
    if not queries:
        return Items([], {})
    lists = "".join(
        f',"{name}":["VARCHAR"]' for name in ("visible", "wanted", *(f"only_{field}" for field in narrowed))
    )
    statement = f"""WITH params AS (
        SELECT unnest(from_json($1, '{{"tenant":"VARCHAR","versions":["BIGINT"]{lists}}}'))
    ) {" UNION ".join(queries)}"""
    rows = [(row, item_of(row)) for row in named_rows(cursor, statement, [parameters])]
    return Items(
        [item_then(item, row["version_position"], org, row["updated_at"]) for row, item in rows],
        {row["version_position"]: item for row, item in rows},
    )

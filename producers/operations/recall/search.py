"""Search, and the recall event that records what was served to whom."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Collection, Sequence
from datetime import datetime

import structlog

from kledger.answers.explained import SearchExplained
from kledger.contract.bounds import is_blank
from kledger.contract.errors import InvalidPayload, LedgerError
from kledger.contract.language import Language
from kledger.contract.recall import Intent
from kledger.contract.scopes import Caller
from kledger.contract.seal_mark import MARK
from kledger.contract.words import RecallKind, RecallLayer, RecallPath, SearchKind
from ledger.event import JsonObject, Lineage, NewEvent
from ledger.events.recall import Ranking, RecallServed, ServedItem
from ledger.runtime import tracing
from ledger.runtime.log_once import Outage
from producers.operations.desk import ANY, Desk, Freshness, first_entity, moment_of, position_as_of, reach
from producers.operations.knowledge.reading import check_wanted
from producers.operations.publish import event_id, publish
from producers.operations.recall.routing import Routing, routed
from producers.operations.recording import is_recorded
from projections.search.ask import LEAST_CANDIDATES, Asked
from projections.search.explained import chosen_of
from projections.views.knowledge import ask
from projections.views.knowledge.listing import Wanted, wanted_among, wanted_versions

RECALL_PATIENCE = 2.0
"""Seconds that an answer waits for its recall, where it has to; after that it is given without one."""

NAMED = 10_000
"""Items that a narrowed search hands to the paths one by one; where the filters leave more, it looks among the best."""
NARROWED = (200, 4_000)
"""Candidates of each path among which it looks then, at first and where these are too few."""

_unrecorded = Outage("recalls are served and cannot be recorded", "recalls are recorded again", structlog.get_logger())


async def search(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    query: str,
    *,
    top_k: int = 5,
    min_score: int = 3,
    min_match: float | None = 0.0,
    types: Sequence[str] | None = None,
    owner: str | None = None,
    visibility: Sequence[str] = (),
    as_of: int | datetime | None = None,
    paths: RecallPath = "fused",
    layers: Collection[RecallLayer] | None = None,
    among: Wanted | None = None,
    since: int | None = None,
    record: bool = True,
    kind: SearchKind = "search",
    route: bool | None = None,
    explain: bool = False,
    freshness: Freshness = ANY,
) -> JsonObject:
    """The best matches among the items visible to the caller (SearchResults); what was served is recorded as an event
    of this kind.

    `among` narrows it to items that a list with these filters has. Up to NAMED of them are all looked at; of more,
    those among the best NARROWED candidates of each path. What matches less than `min_match` is left out (None: the
    floor for as many items as the caller sees). With `route` (None: the node's default) a model picks first; the answer
    says whether it did. With `explain` it says in `explained` why each result stands where it does. `position` is the
    least position of all parts that answered: the answer reflects all events up to it.

    Raises InvalidPayload (empty query, as_of), ViewBehind. A search also works while the broker is unavailable.
    """
    check_query(query)
    if among is not None:
        await check_wanted(desk, among)
    desk.tally.searched_at = time.monotonic()
    await reach(desk, freshness)
    await freshness.reach_vectors(desk.searcher)
    then = await position_as_of(desk, as_of, freshness)
    # Read before the queries: each part has at least this position, and the answer has the least of them.
    reached = desk.view.position if paths == "recency" else min(desk.view.position, desk.searcher.position)
    position = reached if then is None else min(reached, then)
    results: list[JsonObject] = []
    choice: Routing | None = None
    told: list[SearchExplained] = []

    least = await desk.searcher.floor(desk.org, caller.searched_scopes()) if min_match is None else min_match

    moment = await moment_of(desk, as_of, then)
    named = (
        None if among is None else await desk.view.ask(wanted_versions, desk.org, caller, among, NAMED, then, moment)
    )

    async def readable(ids: list[str]) -> set[str]:
        if among is not None:
            return await desk.view.ask(wanted_among, desk.org, caller, among, ids, then, moment)
        return set(await desk.view.ask(ask.readable_ids, desk.org, caller, ids))

    async def ranked(most: int) -> list[JsonObject]:
        if among is None:
            return await of_candidates(most, LEAST_CANDIDATES)
        if named is not None:
            return await of_candidates(most, NARROWED[0]) if named or explain else []
        first = await of_candidates(most, NARROWED[0])
        return first if len(first) == most else await of_candidates(most, NARROWED[1])

    async def of_candidates(most: int, candidates: int) -> list[JsonObject]:
        asked = Asked(
            org=desk.org,
            query=query,
            visible=caller.searched_scopes(),
            top_k=most,
            min_score=min_score,
            min_match=least,
            layers=layers,
            since=since,
            types=types,
            as_of=then,
            moment=moment,
            paths=paths,
            # Items that are no longer readable stay hidden; what is named was chosen among those that are.
            readable=None if named or (then is None and among is None) else readable,
            lacking=freshness.note,
            only={"owner": [] if owner is None else [owner], "visibility": visibility},
            versions=named or None,
            explain=told.append if explain else None,
            candidates=candidates,
        )
        return await desk.searcher.search(asked)

    began = time.perf_counter()
    if then != 0 or explain:
        with tracing.span("search", kledger__paths=paths):
            if desk.routing if route is None else route:
                results, choice = await routed(desk, query, top_k, ranked)
            else:
                results = await ranked(top_k)
    desk.tally.searches += 1
    desk.tally.took("search", time.perf_counter() - began)
    recall_id = None
    if record and is_recorded(desk.recorded, caller):
        recall_id = await keep(desk, recall_event(desk, caller, lineage, kind, query, results, position))
    chosen = {} if choice is None else {"routed": choice.routed, "reason": choice.reason}
    why = {"explained": _explained(told[-1], results, choice)} if explain else {}
    return {"results": results, "count": len(results), "position": position, "recall_id": recall_id, **chosen, **why}


def _explained(told: SearchExplained, results: Sequence[JsonObject], choice: Routing | None) -> SearchExplained:
    """Why these are the results, where a model may have chosen among what was ranked."""
    return told if choice is None else chosen_of(told, results, by_a_model=choice.routed)


def check_query(query: str) -> None:
    """Raise InvalidPayload for a text that cannot be searched for, or not be recorded."""
    if is_blank(query) or "\0" in query:
        raise InvalidPayload(
            "the query is empty or holds a NUL character: say in words what you look for",
            errors=[{"field": "q", "reason": "is not a text to search for"}],
        )
    if query.startswith(MARK):  # no event may hold it, so the recall could not be recorded
        raise InvalidPayload(
            f"the query begins with {MARK}, as only what the ledger has sealed may: put something before it",
            errors=[{"field": "q", "reason": "begins as a sealed value does"}],
        )


def recall_event(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    kind: RecallKind,
    query: str,
    results: Sequence[JsonObject],
    position: int,
    retry: uuid.UUID | None = None,
    *,
    session: str | None = None,
    language: Language | None = None,
    intent: Intent | None = None,
    policy: str | None = None,
) -> NewEvent:
    """The event of a served recall: these items, best first, from the state at `position`; one per `retry` key."""
    served = [
        ServedItem(id=each["id"], version=each["version"], relevance=float(each["relevance"])) for each in results
    ]
    ranking = Ranking(
        policy=policy or desk.searcher.policy,
        matches=[each.get("match") for each in results],
        session=session,
        language=language,
        intent=intent,
    )
    fact = RecallServed(
        kind=kind,
        query=query,
        visible_scopes=caller.visible_scopes(),
        items=served,
        view_position=position,
        ranking=ranking,
    )
    recall_id = f"recall-{(uuid.uuid4() if retry is None else uuid.uuid5(retry, 'recall')).hex}"
    return NewEvent(fact, recall_id, first_entity(caller), desk.org, lineage, id=event_id(retry, "recall"))


async def keep(desk: Desk, event: NewEvent) -> str | None:
    """Record a recall, and return its id; None where that failed, which fails no answer.

    Where the desk gathers recalls, this one is appended after its answer (producers/operations/gathered_recalls.py).
    """
    if desk.recalls is not None:
        return event.entity_id if await desk.recalls.record(event, RECALL_PATIENCE) else None
    try:
        async with asyncio.timeout(RECALL_PATIENCE):
            await publish(desk.ledger, desk.tally, [event])
    except (LedgerError, TimeoutError) as error:
        desk.tally.recalls_lost += 1
        _unrecorded.met(type(error).__name__, recall_id=event.entity_id)
        return None
    _unrecorded.over()
    return event.entity_id

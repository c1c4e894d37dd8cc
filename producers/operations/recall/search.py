"""Search among the items visible to the caller; what was served is recorded as a recall."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from kledger.answers.explained import SearchExplained
from kledger.contract.bounds import MOST_QUERY, is_blank
from kledger.contract.errors import InvalidPayload
from kledger.contract.scopes import Caller
from kledger.contract.seal_mark import MARK
from kledger.contract.words import RecallLayer, RecallPath, SearchKind
from ledger import one_answer
from ledger.event import JsonObject, Lineage
from ledger.runtime import tracing
from producers.operations.desk import ANY, Desk, Freshness, moment_of, position_as_of, reach
from producers.operations.knowledge.reading import check_wanted
from producers.operations.knowledge.unmatched import with_unmatched
from producers.operations.recall.later import with_later_first
from producers.operations.recall.routing import Routing, routed
from producers.operations.recall.served import keep, recall_event
from producers.operations.recording import is_recorded
from projections.search.asked import LEAST_CANDIDATES, Asked, Readable
from projections.search.asking import shortened
from projections.search.explained import chosen_of
from projections.search.match import BESIDE_SURE
from projections.views.knowledge import ask
from projections.views.knowledge.listing import Wanted, wanted_among, wanted_versions

NAMED = 10_000
"""Items that a narrowed search hands to the paths one by one; where the filters leave more, it looks among the best."""
NARROWED = (200, 4_000)
"""Candidates of each path among which it looks then, at first and where these are too few."""


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
    as_ranked: bool = False,
    freshness: Freshness = ANY,
) -> JsonObject:
    """The best matches among the items visible to the caller (SearchResults); what was served is recorded as an event
    of this kind.

    `among` narrows it to items that a list with these filters has. Up to NAMED of them are all looked at; of more,
    those among the best NARROWED candidates of each path. What matches less than `min_match` is left out (None: what
    answers nothing among as many items as the caller sees). With `route` (None: the node's default) a model picks
    first; the answer says whether it did. With `explain` it says in `explained` why each result stands where it does.
    What was said later about one thing stands before what was said earlier, unless one path alone is asked, or
    `as_ranked`. `position` is the least position of all parts that answered: the answer reflects all events up to it.

    Raises InvalidPayload (empty query, as_of), ViewBehind. A search also works while the broker is unavailable.
    """
    query, of = searched(query)
    if among is not None:
        await check_wanted(desk, among)
    desk.tally.searched_at = time.monotonic()
    await reach(desk, freshness)
    await freshness.reach_vectors(desk.searcher)
    then = await position_as_of(desk, as_of, freshness)
    # Read before the queries: each part has at least this position, and the answer has the least of them.
    reached = desk.view.position if paths == "recency" else min(desk.view.position, desk.searcher.position)
    position = reached if then is None else min(reached, then)
    floor = await desk.searcher.floor(desk.org, caller.searched_scopes()) if min_match is None else 0.0
    moment = await moment_of(desk, as_of, then)
    named: list[int] | None = None
    if among is not None:
        named = await desk.view.ask(wanted_versions, desk.org, caller, among, NAMED, then, moment)
    told: list[SearchExplained] = []
    asked = Asked(
        org=desk.org,
        query=query,
        visible=caller.searched_scopes(),
        min_score=min_score,
        min_match=BESIDE_SURE * floor if min_match is None else min_match,
        sure=floor,
        layers=layers,
        since=since,
        types=types,
        as_of=then,
        moment=moment,
        paths=paths,
        readable=_readable(desk, caller, among, named, then, moment),
        lacking=freshness.note,
        only={"owner": [] if owner is None else [owner], "visibility": visibility},
        versions=named or None,
        explain=told.append if explain else None,
        candidates=LEAST_CANDIDATES if among is None else NARROWED[0],
    )

    async def ranked(most: int) -> list[JsonObject]:
        if among is not None and named == [] and not explain:
            return []
        best = await desk.searcher.search(replace(asked, top_k=most))
        if among is None or named is not None or len(best) == most:
            return best
        return await desk.searcher.search(replace(asked, top_k=most, candidates=NARROWED[1]))

    results: list[JsonObject] = []
    choice: Routing | None = None
    began = time.perf_counter()
    if then != 0 or explain:
        with tracing.span("search", kledger__paths=paths):
            if desk.routing if route is None else route:
                results, choice = await routed(desk, query, top_k, ranked)
            else:
                results = await ranked(top_k)
    if paths == "fused" and not as_ranked:
        results = await with_later_first(desk, results, then)
    desk.tally.searches += 1
    desk.tally.took("search", time.perf_counter() - began)
    recall_id = None
    if record and is_recorded(desk.recorded, caller):
        recall_id = await keep(desk, recall_event(desk, caller, lineage, kind, query, results, position))
    chosen = {} if choice is None else {"routed": choice.routed, "reason": choice.reason}
    why = {"explained": _explained(told[-1], results, choice)} if explain else {}
    if not as_ranked:  # else another operation goes on with them
        results = one_answer.with_room(results)
    answer = {"results": results, "count": len(results), "position": position, "recall_id": recall_id}
    if not results and not as_ranked:
        narrowed = replace(among or Wanted(), types=types or (), owner=owner)
        answer = await with_unmatched(desk, caller, narrowed, answer, then, moment)
    return answer | chosen | why | of


def _readable(
    desk: Desk, caller: Caller, among: Wanted | None, named: list[int] | None, then: int | None, moment: datetime
) -> Readable | None:
    """What tells which of the candidates the caller may read and asked for; None where the search knows by itself.

    What was readable at an earlier position stays hidden where it no longer is.
    """
    if among is not None:

        async def wanted(ids: list[str]) -> set[str]:
            return await desk.view.ask(wanted_among, desk.org, caller, among, ids, then, moment)

        return None if named else wanted  # what is named was chosen among what the caller reads

    async def readable_now(ids: list[str]) -> set[str]:
        return set(await desk.view.ask(ask.readable_ids, desk.org, caller, ids))

    return None if then is None else readable_now


def _explained(told: SearchExplained, results: Sequence[JsonObject], choice: Routing | None) -> SearchExplained:
    """Why these are the results, where a model may have chosen among what was ranked, or one was said later."""
    return chosen_of(told, results, by_a_model=choice is not None and choice.routed)


def searched(message: str) -> tuple[str, JsonObject]:
    """What of a message is searched for and recorded, and what its answer says of that: `searched`, how many
    characters of a longer message it is.

    A longer one would be lost in its own words, and no record holds it. Raises InvalidPayload.
    """
    _check(message)
    text = shortened(message, MOST_QUERY)
    if text != message:  # it may begin later
        _check(text)
    return text, {} if text == message else {"searched": len(text)}


def _check(query: str) -> None:
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

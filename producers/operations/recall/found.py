"""What a recall finds for a message: by its own words, and where those find nothing in other words of a model."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Hashable
from datetime import UTC, datetime, timedelta
from typing import Protocol

from kledger.answers.parts import Degraded
from kledger.contract.language import Language
from kledger.contract.scopes import OPERATOR, Caller
from kledger.requests.recall import RecallRequest
from ledger.event import JsonObject, Lineage
from ledger.prompts import language_of
from producers.operations.desk import Desk, Freshness
from producers.operations.recall.search import search
from projections.search.asked_differently import Hit, joined
from projections.search.asking import asks_of_its_user

RECENT_DAYS = 7
"""The path of fresh things reads what was made within so many days."""
POOL = 4
"""So many times the results that are asked for are ranked."""
_LEAST_POOL, _MOST_POOL = 20, 100


class By(Protocol):
    """A search by one text, of all that the caller sees or of what one owns."""

    async def __call__(self, text: str, owner: str | None = None) -> JsonObject: ...


async def found_for(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    asked: RecallRequest,
    *,
    as_of: int | datetime | None,
    floor: float,
    language: Language,
    freshness: Freshness,
) -> JsonObject:
    """`results` and `position` of a message: of the present kept for a while, as of a moment never."""
    key = _key(desk, caller, asked, floor, language)
    state = None if as_of is not None else desk.searcher.state()
    if as_of is None and (kept := desk.recalled.get(key, state)) is not None:
        return {**kept, "position": min(desk.view.position, desk.searcher.position)}
    since = None if as_of is not None else await desk.searcher.lately.since(timedelta(days=RECENT_DAYS))

    pool = min(_MOST_POOL, max(_LEAST_POOL, POOL * asked.top_k))

    async def by(text: str, owner: str | None = None) -> JsonObject:
        return await search(
            desk,
            caller,
            lineage,
            text,
            owner=owner,
            top_k=pool,
            min_score=asked.min_score,
            min_match=asked.min_match,
            as_of=as_of,
            layers=None if asked.layers is None else frozenset(asked.layers),
            since=since,
            record=False,
            route=False,
            as_ranked=True,
            freshness=freshness,
        )

    first = await _with_own(caller, asked.message, await by(asked.message), by, pool)
    found = await _in_other_words(desk, caller, asked, first, by, floor, language, freshness)
    whole = freshness.degraded is not None and not freshness.degraded
    if state is not None and whole and state == desk.searcher.state():
        ends = await desk.searcher.lately.next_end(desk.org, state)
        lives = math.inf if ends is None else (ends - datetime.now(UTC)).total_seconds()
        desk.recalled.put(key, state, found, lives)
    return found


async def _with_own(caller: Caller, message: str, first: JsonObject, by: By, pool: int) -> JsonObject:
    """What was found, and what the user who asks of themselves owns, where others' may have taken its place: it is as
    relevant as the last of those at most."""
    person, results = caller.person(), first["results"]
    if person in (None, OPERATOR) or len(results) < pool or not asks_of_its_user(message):
        return first
    own = await by(message, owner=person)
    known, last = {item["id"] for item in results}, min(item["relevance"] for item in results)
    further = [item | {"relevance": min(item["relevance"], last)} for item in own["results"] if item["id"] not in known]
    return {**first, "results": [*results, *further], "position": min(first["position"], own["position"])}


async def _in_other_words(
    desk: Desk,
    caller: Caller,
    asked: RecallRequest,
    first: JsonObject,
    by: By,
    floor: float,
    language: Language,
    freshness: Freshness,
) -> JsonObject:
    """What was found, and where none of it reaches the floor, what a model's words for the question find."""
    if desk.rewriter is None or any(item["match"] >= floor for item in first["results"]):
        return first
    whose = repr((desk.org, caller.reading_as(), caller.searched_scopes()))
    spoken = language_of(asked.message) or language  # of the question, whichever its reader's texts are in
    written = await desk.rewriter.asked_differently(asked.message, spoken, whose)
    if written.reason is not None:
        freshness.note(Degraded(part="rewriting", reason=written.reason, position=None))
    texts = [*written.queries, *([written.hypothetical] if written.hypothetical is not None else [])]
    answers = await asyncio.gather(*(by(text) for text in texts))
    further = [
        [Hit(item["id"], item["match"], {**item, "asked_as": text}) for item in answer["results"]]
        for text, answer in zip(texts, answers, strict=True)
    ]
    own = [Hit(item["id"], item["match"], item) for item in first["results"]]
    results = [{**hit.result, "match": round(hit.match, 4)} for hit in joined(own, further, floor)]
    return {**first, "results": results, "position": min([first["position"], *(each["position"] for each in answers)])}


def _key(desk: Desk, caller: Caller, asked: RecallRequest, floor: float, language: Language) -> Hashable:
    """Everything that the results follow from, beside the state of the items."""
    stated = (asked.message, asked.top_k, asked.min_score, asked.min_match, tuple(asked.layers or ()), floor)
    return (desk.org, tuple(caller.reading_as()), tuple(caller.searched_scopes()), stated, language)

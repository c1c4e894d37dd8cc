"""Recall by a message: what is known that answers it, as results with their reasons and as a text for a prompt.

Intent, candidates of all paths with those beside them, other words where the first ones find nothing, bounded rerank,
what the session holds already left out, the surroundings of chunks, and the `<memory>` document. What was served is
recorded as one event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from kledger.answers.parts import Degraded
from kledger.contract.errors import BrokerUnavailable
from kledger.contract.language import Language
from kledger.contract.recall import Intent
from kledger.contract.scopes import Caller, check_name
from kledger.contract.words import RecallLayer
from kledger.requests.recall import RecallRequest
from ledger import one_answer
from ledger.event import JsonObject, Lineage
from ledger.sessions.tokens import counter_for
from producers.operations.desk import ANY, Desk, Freshness, moment_of, position_as_of, reach
from producers.operations.recall.found import found_for
from producers.operations.recall.in_session import InSession, of_session
from producers.operations.recall.intent import READS, intent_of
from producers.operations.recall.search import searched
from producers.operations.recall.served import keep, recall_event
from producers.operations.recording import is_recorded
from projections.search.model_rerank import Place, rerank_factor, reranked
from projections.search.policy import with_reranker
from projections.search.prompt.memory_text import Told, is_of_another, is_personal, memory_text
from projections.search.prompt.said_once import said_once
from projections.search.prompt.stated import stated_at
from projections.search.ranking import freshness as freshness_at
from projections.search.ranking import with_a_sure_one
from projections.search.rerank import ALSO, MAIN, factors
from projections.similar.later_first import MOST as COMPARED
from projections.similar.later_first import later_first
from projections.views.documents.ask import surroundings
from projections.views.knowledge.layers import layer_of
from projections.views.knowledge.memories import Evidence, evidence

EXACT = 0.9
"""A result with so much of the message in it is sure: a reranker leaves it in its place."""


async def recall(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    asked: RecallRequest,
    *,
    as_of: int | datetime | None = None,
    language: Language,
    freshness: Freshness = ANY,
) -> JsonObject:
    """What is known that answers a message (Recalled). `nothing_known`: no result reaches the floor.

    Raises InvalidPayload (message, as_of), IllegalScope (target_agent), ViewBehind.
    """
    message, of = searched(asked.message)
    asked = asked.model_copy(update={"message": message})
    target = None if asked.target_agent is None else check_name("agent", asked.target_agent)
    await reach(desk, freshness)
    await freshness.reach_vectors(desk.searcher)
    intent = await _intent(desk, asked.message, target)
    floor = await desk.searcher.floor(desk.org, caller.searched_scopes())
    found = await found_for(
        desk, caller, lineage, asked, as_of=as_of, floor=floor, language=language, freshness=freshness
    )
    session = await _session(desk, caller, asked, as_of, freshness)
    then = await position_as_of(desk, as_of, freshness)
    now = await moment_of(desk, as_of, then)
    left = [item for item in found["results"] if not session.holds(item)]
    ranked = [_ranked(item, intent, target, now, message=asked.message, person=caller.person()) for item in left]
    if _reads_session(asked, intent):
        least = floor if asked.min_match is None else asked.min_match
        ranked += session.working(least, _unit(found["results"], floor))
    ranked.sort(key=lambda item: -float(item["why"]["score"]))
    ranked = await _reranked(desk, asked.message, said_once(ranked), floor, freshness)
    looked_at = ranked[: max(asked.top_k, COMPARED)]
    known = await _evidence(desk, looked_at, then)
    ranked = later_first(ranked, {name: each.upheld for name, each in known.items()})
    sure = floor if asked.min_match is None else 0.0
    results = with_a_sure_one(ranked, lambda item: bool(item["match"] >= sure), asked.top_k)
    if results and all(item["id"] != results[-1]["id"] for item in looked_at):  # the sure one, from further down
        known |= await _evidence(desk, results[-1:], then)
    if as_of is None:
        results = await _with_surroundings(desk, caller, results)
    text, shown = _text(caller, results, known, language, now, asked.budget_tokens)
    recall_id = None
    if asked.record and is_recorded(desk.recorded, caller):
        items = [item for item in results if item["layer"] != "working"]
        event = recall_event(
            *(desk, caller, lineage, asked.kind, asked.message, items, found["position"]),
            session=asked.session,
            language=language,
            intent=intent,
            policy=_policy(desk, results),
        )
        recall_id = await keep(desk, event)
    return {
        "intent": intent,
        "results": one_answer.with_room(results),
        "count": len(results),
        "text": text,
        "shown": shown,
        "nothing_known": all(item["match"] < floor for item in results),
        "floor": floor,
        "left_out": session.left_out,
        "position": found["position"],
        "recall_id": recall_id,
        **of,
    }


def _policy(desk: Desk, results: Sequence[JsonObject]) -> str:
    """The name of the settings that ranked, those of a reranker that was heard among them."""
    if not any("rerank" in item["why"] for item in results):
        return desk.searcher.policy
    return with_reranker(desk.searcher.policy, str(desk.tiers.told()["rerank"]["model"]))


async def _intent(desk: Desk, message: str, target: str | None) -> Intent:
    """By a model where one is set and answers in time, else by rules; a target agent asks across agents."""
    if desk.intents is not None and target is None:
        told, _ = await desk.intents.intent(message)
        if told is not None:
            return told
    return intent_of(message, target_agent=target)


async def _session(
    desk: Desk, caller: Caller, asked: RecallRequest, as_of: int | datetime | None, freshness: Freshness
) -> InSession:
    """The words of the session, where one is named and there are any."""
    if asked.session is None or as_of is not None or desk.sessions is None:
        return InSession()
    try:
        return await of_session(desk, caller, asked.session, asked.message)
    except BrokerUnavailable as error:
        freshness.note(Degraded(part="sessions", reason=f"the session was not read: {error.message}", position=None))
        return InSession()


def _ranked(
    item: JsonObject, intent: Intent, target: str | None, now: datetime, *, message: str, person: str | None
) -> JsonObject:
    """A result with its layer and the factors that rank it (`why`)."""
    layer = layer_of(item)
    why = factors(
        relevance=item["relevance"],
        freshness=freshness_at(datetime.fromisoformat(item["updated_at"]), now),
        layer=layer,
        intent=_fit(item, layer, intent, target),
        confidence=item["eval"]["confidence"],
        quality=item["quality_score"],
        of_another=is_of_another(item, layer, message, person),
    )
    shown: JsonObject = {**item, "layer": layer, "why": why.shown()}
    return shown


def _fit(item: JsonObject, layer: RecallLayer, intent: Intent, target: str | None) -> float:
    """How far an item is one that answers the intent: by its layer, a preference also by what it says.

    What a target agent knows counts fully.
    """
    reads = READS[intent]
    if layer == reads.main or (intent == "preference" and layer in _SAY_PREFERENCES and is_personal(item, layer)):
        return MAIN
    if layer != reads.also:
        return 0.0
    return MAIN if target is not None and _is_of(item, target) else ALSO


_SAY_PREFERENCES: tuple[RecallLayer, ...] = ("plain", "shared")
"""Layers in which profiles, and preferences that a project shares, stand beside other things."""


def _is_of(item: JsonObject, agent: str) -> bool:
    return agent in (item["source"].get("agent_id"), str(item["owner"]).removeprefix("agent:"))


def _reads_session(asked: RecallRequest, intent: Intent) -> bool:
    """Whether the older words of the session are read: they answer a follow-up, or are asked for as a layer."""
    return intent == "follow_up" if asked.layers is None else "working" in asked.layers


def _unit(items: Sequence[JsonObject], floor: float) -> float:
    """The relevance that a match of 1 has among these items, so that words of the session compare with them."""
    if not items:
        return 1.0
    return float(max(item["relevance"] for item in items) / max(floor, *(item["match"] for item in items)))


async def _reranked(
    desk: Desk, message: str, ranked: Sequence[JsonObject], floor: float, freshness: Freshness
) -> list[JsonObject]:
    """The results in the order of a reranker, within its bounds, where one is set and answers in time."""
    if desk.reranker is None or len(ranked) < 2:
        return list(ranked)
    scores, reason = await desk.reranker.rerank(message, [f"{item['task']}\n{item['content']}" for item in ranked])
    if scores is None:
        if reason is not None:
            freshness.note(Degraded(part="reranker", reason=reason, position=None))
        return list(ranked)
    places = [Place(item["why"]["score"], item["match"], pinned=item["match"] >= EXACT) for item in ranked]
    told = [
        {**item, "why": {**item["why"], "rerank": round(rerank_factor(score), 4)}}
        for item, score in zip(ranked, scores, strict=False)
    ]
    whole = [*told, *ranked[len(told) :]]
    return [whole[at] for at in reranked(places, scores, floor)]


async def _with_surroundings(desk: Desk, caller: Caller, results: Sequence[JsonObject]) -> list[JsonObject]:
    """The results; a chunk of a document has its headings and the chunks before and after it (`part`)."""
    chunks = [item["id"] for item in results if item["layer"] == "document"]
    around = await desk.view.ask(surroundings, desk.org, caller, chunks) if chunks else {}
    return [item | ({"part": _part(around[item["id"]])} if item["id"] in around else {}) for item in results]


def _part(around: JsonObject) -> JsonObject:
    sides = {side: [{"id": each["id"], "content": each["content"]} for each in around[side]] for side in _SIDES}
    return {name: around[name] for name in ("document", "title", "headings")} | sides


_SIDES = ("before", "after")


async def _evidence(desk: Desk, results: Sequence[JsonObject], then: int | None) -> dict[str, Evidence]:
    """The evidence of these results, as of the position `then` if one is given.

    Nothing is looked up of knowledge of which nothing has become since it was saved.
    """
    items = [item for item in results if item["layer"] != "working"]
    asked = [item["id"] for item in items if "memory" in item or item["updated_at"] != item["created_at"]]
    return await desk.view.ask(evidence, desk.org, asked, then) if asked else {}


def _text(
    caller: Caller,
    results: Sequence[JsonObject],
    known: Mapping[str, Evidence],
    language: Language,
    now: datetime,
    budget: int | None,
) -> tuple[str, int]:
    """The document of the results, and how many of them it shows."""
    lines = [_told(item, known.get(item["id"])) for item in results]
    person = caller.person()
    if budget is None:
        return memory_text(lines, language, now, person=person)
    count = counter_for(None)
    return memory_text(lines, language, now, person=person, fits=lambda text: count(text) <= budget)


def _told(item: JsonObject, known: Evidence | None) -> Told:
    """A result as a line of the text tells it."""
    if item["layer"] == "working":
        return Told(item, "working", 1, stated=item["updated_at"])
    sources, kept = (known.sources, known.stated) if known is not None else (1, item["updated_at"])
    return Told(item, item["layer"], sources, stated_at(item, kept))

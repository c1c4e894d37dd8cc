"""Recall by a message: what is known that answers it, as results with their reasons and as a text for a prompt.

Intent, candidates of all paths with those beside them, bounded rerank, what the session holds already left out, and the
`<memory>` document. What was served is recorded as one event.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from kledger.answers.parts import Degraded
from kledger.contract.errors import BrokerUnavailable
from kledger.contract.language import Language
from kledger.contract.recall import MATCH_FLOOR, Intent, RecallLayer
from kledger.contract.scopes import Caller, check_name
from kledger.requests.recall import RecallRequest
from ledger.event import JsonObject, Lineage
from ledger.sessions.tokens import counter_for
from producers.operations.desk import ANY, Desk, Freshness
from producers.operations.recall.in_session import InSession, of_session
from producers.operations.recall.intent import READS, Reads, intent_of
from producers.operations.recall.search import keep, recall_event, search
from producers.operations.recording import is_recorded
from projections.search.layers import layer_of
from projections.search.memory_text import memory_text
from projections.search.ranking import freshness as freshness_at
from projections.search.rerank import ALSO, MAIN, factors
from projections.views.knowledge.memories import evidence_counts
from projections.views.lineage import ask as lineage_of

RECENT_DAYS = 7
"""The path of fresh things reads what was made within so many days."""
POOL = 4
"""So many times the results that are asked for are ranked."""
_LEAST_POOL, _MOST_POOL = 20, 100


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
    """What is known that answers a message (Recalled). `nothing_known`: no result reaches the floor of `match`.

    Raises InvalidPayload (message, as_of), IllegalScope (target_agent), ViewBehind.
    """
    target = None if asked.target_agent is None else check_name("agent", asked.target_agent)
    intent = intent_of(asked.message, target_agent=target)
    pool = min(_MOST_POOL, max(_LEAST_POOL, POOL * asked.top_k))
    found = await search(
        desk,
        caller,
        lineage,
        asked.message,
        top_k=pool,
        min_score=asked.min_score,
        min_match=asked.min_match,
        as_of=as_of,
        layers=None if asked.layers is None else frozenset(asked.layers),
        since=None if as_of is not None else await _since(desk),
        record=False,
        freshness=freshness,
    )
    session = await _session(desk, caller, asked, as_of, freshness)
    now = datetime.now(UTC)
    ranked = [_ranked(item, intent, target, now) for item in found["results"] if not session.holds(item)]
    ranked += _working(session, asked, intent)
    results = sorted(ranked, key=lambda item: -float(item["why"]["score"]))[: asked.top_k]
    text, shown = await _text(desk, results, language, now, asked.budget_tokens)
    recall_id = None
    if asked.record and is_recorded(desk.recorded, caller):
        items = [item for item in results if item["layer"] != "working"]
        event = recall_event(
            *(desk, caller, lineage, "recall", asked.message, items, found["position"]),
            session=asked.session,
            language=language,
            intent=intent,
        )
        recall_id = await keep(desk, event)
    return {
        "intent": intent,
        "results": results,
        "count": len(results),
        "text": text,
        "shown": shown,
        "nothing_known": all(item["match"] < MATCH_FLOOR for item in results),
        "left_out": session.left_out,
        "position": found["position"],
        "recall_id": recall_id,
    }


async def _since(desk: Desk) -> int:
    """The log position RECENT_DAYS ago."""
    position, _ = await desk.view.ask(lineage_of.position_at, datetime.now(UTC) - timedelta(days=RECENT_DAYS))
    return int(position)


async def _session(
    desk: Desk, caller: Caller, asked: RecallRequest, as_of: int | datetime | None, freshness: Freshness
) -> InSession:
    """The words of the session, where one is named and there are any."""
    if asked.session is None or as_of is not None:
        return InSession()
    try:
        return await of_session(desk, caller, asked.session, asked.message)
    except BrokerUnavailable as error:
        freshness.note(Degraded(part="sessions", reason=f"the session was not read: {error.message}", position=None))
        return InSession()


def _ranked(item: JsonObject, intent: Intent, target: str | None, now: datetime) -> JsonObject:
    """A result with its layer and the factors that rank it (`why`)."""
    layer = layer_of(item)
    why = factors(
        relevance=item["relevance"],
        freshness=freshness_at(datetime.fromisoformat(item["updated_at"]), now),
        layer=layer,
        intent=_fit(item, layer, READS[intent], target),
        confidence=item["eval"]["confidence"],
        quality=item["quality_score"],
    )
    shown: JsonObject = {**item, "layer": layer, "why": why.shown()}
    return shown


def _fit(item: JsonObject, layer: RecallLayer, reads: Reads, target: str | None) -> float:
    """How far the layer of an item is one that answers the intent; what a target agent knows counts fully."""
    if layer == reads.main:
        return MAIN
    if layer != reads.also:
        return 0.0
    return MAIN if target is not None and _is_of(item, target) else ALSO


def _is_of(item: JsonObject, agent: str) -> bool:
    return agent in (item["source"].get("agent_id"), str(item["owner"]).removeprefix("agent:"))


def _working(session: InSession, asked: RecallRequest, intent: Intent) -> list[JsonObject]:
    """The older words of the session that answer a follow-up, or are asked for as a layer."""
    wanted = intent == "follow_up" if asked.layers is None else "working" in asked.layers
    return [item for item in session.older if item["match"] >= asked.min_match] if wanted else []


async def _text(
    desk: Desk, results: Sequence[JsonObject], language: Language, now: datetime, budget: int | None
) -> tuple[str, int]:
    """The document of the results, and how many of them it shows."""
    memories = [item["id"] for item in results if "memory" in item]
    sources = await desk.view.ask(evidence_counts, desk.org, memories) if memories else {}
    lines = [(item, item["layer"], sources.get(item["id"], 1)) for item in results]
    if budget is None:
        return memory_text(lines, language, now)
    count = counter_for(None)
    return memory_text(lines, language, now, fits=lambda text: count(text) <= budget)

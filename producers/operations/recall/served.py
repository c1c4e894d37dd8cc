"""The recall event: what was served to whom, recorded without failing the answer that it is about."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence

import structlog

from kledger.contract.errors import LedgerError
from kledger.contract.language import Language
from kledger.contract.recall import Intent
from kledger.contract.scopes import Caller
from kledger.contract.words import RecallKind
from ledger.event import JsonObject, Lineage, NewEvent
from ledger.events.recall import RecallServed
from ledger.runtime.log_once import Outage
from producers.operations.desk import Desk, first_entity
from producers.operations.publish import event_id, publish

RECALL_PATIENCE = 2.0
"""Seconds that an answer waits for its recall, where it has to; after that it is given without one."""

_unrecorded = Outage("recalls are served and cannot be recorded", "recalls are recorded again", structlog.get_logger())


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
    fact = RecallServed.model_validate(  # all of it in one call: a model of each part takes three times as long
        {
            "kind": kind,
            "query": query,
            "visible_scopes": caller.visible_scopes(),
            "items": [
                {"id": each["id"], "version": each["version"], "relevance": each["relevance"]} for each in results
            ],
            "view_position": position,
            "ranking": {
                "policy": policy or desk.searcher.policy,
                "matches": [each.get("match") for each in results],
                "session": session,
                "language": language,
                "intent": intent,
            },
        }
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

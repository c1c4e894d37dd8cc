"""Confirmation of a memory by somebody who reads it: evidence for it, and a short memory becomes a semantic one."""

from __future__ import annotations

import uuid
from collections.abc import Collection

from kledger.answers.memory import Confirmed
from kledger.contract.errors import Erased, IllegalState, UnknownKnowledge, VersionConflict
from kledger.contract.knowledge import Case
from kledger.contract.scopes import Caller
from kledger.contract.words import MemoryLayer
from kledger.requests.memory import ConfirmRequest
from ledger.event import Lineage, NewEvent, utc_now
from ledger.events.knowledge import KnowledgeConfirmed, KnowledgePromoted
from ledger.readers import judge_of, readers
from producers.operations.desk import Desk
from producers.operations.knowledge.changes import latest
from producers.operations.knowledge.over import is_over
from producers.operations.memory.reading import unknown_memory
from producers.operations.outcomes import ATTEMPTS, others_write_to
from producers.operations.publish import event_id, lifted, publish
from producers.operations.stated_before import events_of_key, past_actors, refuse_mismatch
from projections.views.knowledge import memories as ask


async def confirm(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    item_id: str,
    payload: ConfirmRequest,
    retry: uuid.UUID | None = None,
) -> Confirmed:
    """Confirm a memory; one that is short is promoted at once.

    Raises UnknownKnowledge, Erased, IllegalState (it is not active), VersionConflict, BrokerUnavailable, ViewBehind.
    """
    case = Case() if payload.case is None else Case(**dict(payload.case))
    confirmed_id, promoted_id = event_id(retry, "confirmed"), event_id(retry, "promoted")
    lineage = lifted(lineage, case)
    for _ in range(ATTEMPTS):
        try:
            item, last = await latest(desk, caller, item_id)
        except UnknownKnowledge:  # closed to the caller since an earlier request with the key
            if retry is None or (before := await _confirmed_while_readable(desk, caller, item_id, case, retry)) is None:
                raise
            return before
        memory = await desk.view.ask(ask.memory, desk.org, caller, item_id, moment=utc_now())
        judge = judge_of(caller, readers(item.scopes, item.shared_with, item.owner))
        if memory is None or judge is None:
            raise unknown_memory(item_id)
        fact = KnowledgeConfirmed(case=case, through=judge.through)
        if retry is not None:
            actors = {judge.actor} | await past_actors(desk, caller, item_id)
            if (before := await _earlier(desk, item_id, fact, actors, retry, memory["layer"])) is not None:
                return before
        if memory["erased"]:
            raise Erased(f"what {item_id} said was erased with the person it belonged to", id=item_id)
        short = memory["layer"] == "short"
        # What is over must not stay for good by a confirmation that comes before the node has stated its end.
        status = "expired" if short and await is_over(desk, item_id) else item.status
        if status != "active":
            fault = f"{item_id} is {status}: only what is active can be confirmed"
            raise IllegalState(fault, id=item_id, status=status)
        events = [
            NewEvent(fact, item_id, judge.actor, desk.org, lineage, id=confirmed_id, expects=last),
        ]
        if short:
            promoted = KnowledgePromoted(cause="confirmed", through=judge.through)
            events.append(NewEvent(promoted, item_id, judge.actor, desk.org, lineage, id=promoted_id))
        try:
            appended = await publish(desk.ledger, desk.tally, events)
        except VersionConflict:
            continue
        layer: MemoryLayer = "semantic" if short else memory["layer"]
        return _confirmed(item_id, layer, short, appended[-1].position, confirmed_id)
    raise others_write_to(item_id)


async def _earlier(
    desk: Desk,
    item_id: str,
    fact: KnowledgeConfirmed,
    actors: Collection[str],
    retry: uuid.UUID,
    layer: MemoryLayer,
) -> Confirmed | None:
    """The answer to an earlier request with the key; None without one. Raises IdempotencyMismatch."""
    confirmed_id, promoted_id = event_id(retry, "confirmed"), event_id(retry, "promoted")
    before = await events_of_key(desk, actors, [confirmed_id, promoted_id])
    if (confirmed := before.get(confirmed_id)) is None:
        return None
    refuse_mismatch(fact, item_id, confirmed)
    position = max(each.position for each in before.values())
    return _confirmed(item_id, layer, promoted_id in before, position, confirmed_id)


async def _confirmed_while_readable(
    desk: Desk, caller: Caller, item_id: str, case: Case, retry: uuid.UUID
) -> Confirmed | None:
    """The answer to an earlier request with the key about an item that the caller reads no more; None without one."""
    memory = await desk.view.ask(ask.memory, desk.org, _EVERYBODY, item_id, moment=utc_now())
    if memory is None:
        return None
    actors = await past_actors(desk, caller, item_id)
    return await _earlier(desk, item_id, KnowledgeConfirmed(case=case), actors, retry, memory["layer"])


_EVERYBODY = Caller(reads_all=True)
"""Whose look at the layer is not held back: the caller was told of it before."""


def _confirmed(item_id: str, layer: MemoryLayer, promoted: bool, position: int, event_id: str) -> Confirmed:
    return Confirmed(id=item_id, layer=layer, promoted=promoted, position=position, event_id=event_id)

"""Evolutions: rewrites of an item by a model, which its owner applies, rejects or reverts."""

from __future__ import annotations

import asyncio
import uuid
from typing import Literal
from weakref import WeakValueDictionary

from kledger.answers.models import DecidedEvolution
from kledger.contract.errors import IllegalState, VersionConflict
from kledger.contract.scopes import Caller
from ledger.event import JsonObject, Lineage, NewEvent
from ledger.events.evolution import EvolutionRejected
from ledger.events.knowledge import KnowledgeEvolved
from producers.operations.desk import Desk, reach_head
from producers.operations.knowledge.over import refuse_over
from producers.operations.knowledge.reverting import revert as revert_item
from producers.operations.knowledge.sharing import revisable
from producers.operations.models.processes import caused, own, own_now, settled
from producers.operations.outcomes import ATTEMPTS
from producers.operations.publish import NAMESPACE, event_id, publish
from producers.operations.stated_before import earlier_event, request_fields
from projections.views.knowledge import ask
from projections.views.processes.ask import Process

KIND = "evolution"
_ENDED = {"applied", "reverted", "rejected", "failed"}
_deciding: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
"""Held while a node decides on an evolution. An application is an event of the item and a rejection is one of the
evolution, so that the position which either expects does not refuse it behind the other."""


def evolution_id(requested_event: str) -> str:
    """The id of the evolution that an event requests."""
    return f"evolution-{uuid.uuid5(NAMESPACE, requested_event).hex[:16]}"


def _decided(
    process: Process, status: Literal["applied", "rejected", "reverted"], position: int, event_id: str
) -> DecidedEvolution:
    return DecidedEvolution(
        id=process.id, status=status, item_id=process.requested["item_id"], position=position, event_id=event_id
    )


def shown(process: Process) -> JsonObject:
    """An evolution as JSON for every interface."""
    request, proposed = process.requested, process.said.get("proposed", {})
    ended = process.said.get("failed") or process.said.get("rejected") or {}
    return {
        **process.shown(),
        "item_id": request["item_id"],
        "base_version": request["base_version"],
        "feedback": request["feedback"],
        "apply": request["apply"],
        "content": proposed.get("content"),
        "task": proposed.get("task"),
        "reason": ended.get("reason") or proposed.get("reason"),
        "code": ended.get("code"),
        "usage": proposed.get("usage") or ended.get("usage"),
    }


async def awaited(desk: Desk, caller: Caller, process_id: str, wait: float) -> tuple[JsonObject, bool]:
    """An evolution once it is settled, or as it is after `wait` seconds; the second value says which of the two.

    Where one that should be applied stays proposed, `reason` says that the item changed since the model got it.
    """

    async def is_settled(process: Process) -> bool:
        if process.status in _ENDED:
            return True
        return process.status == "proposed" and (
            not process.requested["apply"] or await _is_stale(desk, caller, process)
        )

    evolution, done = await settled(desk, caller, KIND, process_id, is_settled, wait)
    answer = shown(evolution)
    if evolution.status == "proposed" and evolution.requested["apply"] and done:
        answer["reason"] = (
            f"{answer['item_id']} is no longer at version {answer['base_version']}, which the model was given, or no "
            "longer for you to read: apply nothing, or ask anew"
        )
    return answer, done


async def apply(
    desk: Desk, caller: Caller, lineage: Lineage, process_id: str, retry: uuid.UUID | None = None
) -> DecidedEvolution:
    """Apply a proposal: it becomes the item's content.

    Raises UnknownProcess, IllegalState, UnknownKnowledge, NotOwner, VersionConflict (the item changed), …
    """
    async with turn_of(desk, process_id):
        return await _apply(desk, caller, lineage, process_id, retry)


async def _apply(
    desk: Desk, caller: Caller, lineage: Lineage, process_id: str, retry: uuid.UUID | None
) -> DecidedEvolution:
    own_id = event_id(retry)
    for _ in range(ATTEMPTS):
        process = await own(desk, caller, KIND, process_id)
        request = process.requested
        if retry is not None and (before := await _applied(desk, process, own_id)) is not None:
            return before
        item, last, _ = await revisable(desk, caller, request["item_id"])
        # Again: what was decided before this turn is folded now, whether of the item or of the process.
        process, _ = await own_now(desk, caller, KIND, process_id)
        if process.status != "proposed":
            raise _illegal_state(process, "applied", "proposed")
        if item.version != request["base_version"]:
            raise VersionConflict(
                f"{item.id} is at version {item.version}, and the proposal was made from version "
                f"{request['base_version']}: ask for another one",
                id=item.id,
                current_version=item.version,
            )
        await refuse_over(desk, item)
        proposal = process.said["proposed"]
        fact = KnowledgeEvolved(
            evolution=process.id,
            base_version=item.version,
            content=proposal["content"],
            task=proposal.get("task"),
        )
        decision_lineage = caused(lineage, process)
        event = NewEvent(fact, item.id, process.owner, desk.org, decision_lineage, id=own_id, expects=last)
        try:
            (appended,) = await publish(desk.ledger, desk.tally, [event])
        except VersionConflict:
            continue
        return _decided(process, "applied", appended.position, own_id)
    raise VersionConflict(f"others keep writing to the item of {process_id}: try again", id=process_id)


def turn_of(desk: Desk, process_id: str) -> asyncio.Lock:
    """The lock that a decision on this evolution holds, on this node."""
    return _deciding.setdefault((desk.org, process_id), asyncio.Lock())


async def _applied(desk: Desk, process: Process, own_id: str) -> DecidedEvolution | None:
    """The decision of an earlier request with the same key."""
    before = await earlier_event(desk, [process.owner], own_id, {"evolution": process.id})
    return None if before is None else _decided(process, "applied", before.position, own_id)


async def reject(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    process_id: str,
    reason: str | None = None,
    retry: uuid.UUID | None = None,
) -> DecidedEvolution:
    """Reject a proposal. Raises UnknownProcess, IllegalState, VersionConflict, BrokerUnavailable."""
    async with turn_of(desk, process_id):
        return await _reject(desk, caller, lineage, process_id, reason, retry)


async def _reject(
    desk: Desk, caller: Caller, lineage: Lineage, process_id: str, reason: str | None, retry: uuid.UUID | None
) -> DecidedEvolution:
    process, expects = await own_now(desk, caller, KIND, process_id)
    fact, own_id = EvolutionRejected(item_id=process.requested["item_id"], reason=reason), event_id(retry)
    if (
        retry is not None
        and (before := await earlier_event(desk, [process.owner], own_id, request_fields(fact))) is not None
    ):
        return _decided(process, "rejected", before.position, own_id)
    if process.status != "proposed":
        raise _illegal_state(process, "rejected", "proposed")
    event = NewEvent(fact, process.id, process.owner, desk.org, caused(lineage, process), id=own_id, expects=expects)
    (appended,) = await publish(desk.ledger, desk.tally, [event])
    return _decided(process, "rejected", appended.position, own_id)


async def revert(
    desk: Desk, caller: Caller, lineage: Lineage, process_id: str, retry: uuid.UUID | None = None
) -> DecidedEvolution:
    """Restore the version of the item before an applied evolution.

    Raises UnknownProcess, IllegalState, VersionConflict (the item changed since), UnknownKnowledge, NotOwner, …
    """
    await reach_head(desk)
    process = await own(desk, caller, KIND, process_id)
    request, own_id = process.requested, event_id(retry)
    if (
        retry is not None
        and (before := await earlier_event(desk, [process.owner], own_id, {"cause": process.id})) is not None
    ):
        return _decided(process, "reverted", before.position, own_id)
    if process.status != "applied":
        raise _illegal_state(process, "reverted", "applied")
    reverted = await revert_item(
        desk,
        caller,
        caused(lineage, process),
        request["item_id"],
        request["base_version"],
        expected_version=request["base_version"] + 1,
        cause=process.id,
        retry=retry,
    )
    return _decided(process, "reverted", reverted["position"], reverted["event_id"])


async def _is_stale(desk: Desk, caller: Caller, process: Process) -> bool:
    """Whether the item changed since the model got it, or is no longer active or visible to the caller.

    Queried as the caller: the state of an item that they can no longer see must not be revealed.
    """
    request = process.requested
    item = await desk.view.ask(ask.standing, desk.org, caller, request["item_id"])
    return item is None or item.version != request["base_version"] or item.status != "active"


def _illegal_state(process: Process, become: str, needed: str) -> IllegalState:
    return IllegalState(
        f"the evolution {process.id} is {process.status}: only one that is {needed} can be {become}",
        id=process.id,
        status=process.status,
    )

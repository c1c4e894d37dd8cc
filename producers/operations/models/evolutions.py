"""How is an item rewritten by a model (mission K4)? Asked for here; then applied, rejected or reverted by its owner."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from kledger.contract.errors import IllegalState, VersionConflict
from kledger.contract.scopes import Caller
from ledger.event import JsonObject, Lineage, NewEvent
from ledger.events.evolution import EvolutionRejected
from ledger.events.knowledge import KnowledgeEvolved
from producers.operations.desk import Desk, reach_head
from producers.operations.knowledge.changes import ATTEMPTS
from producers.operations.knowledge.reverting import revert as revert_item
from producers.operations.knowledge.sharing import revisable
from producers.operations.models.processes import caused, own, settled
from producers.operations.publish import NAMESPACE, event_id, publish
from producers.operations.stated_before import asked as said_by
from producers.operations.stated_before import stated
from projections.views.knowledge import ask
from projections.views.processes.ask import Process

KIND = "evolution"
_ENDED = {"applied", "reverted", "rejected", "failed"}


@dataclass(frozen=True, slots=True)
class Decided:
    """What became of an evolution, and where it is kept."""

    id: str
    status: str
    item_id: str
    position: int
    event_id: str


def evolution_id(requested_event: str) -> str:
    """The id of the evolution that an event requests."""
    return f"evolution-{uuid.uuid5(NAMESPACE, requested_event).hex[:16]}"


def told(process: Process) -> JsonObject:
    """An evolution as every door tells it."""
    asked, proposed = process.requested, process.said.get("proposed", {})
    ended = process.said.get("failed") or process.said.get("rejected") or {}
    return {
        **process.told(),
        "item_id": asked["item_id"],
        "base_version": asked["base_version"],
        "feedback": asked["feedback"],
        "apply": asked["apply"],
        "content": proposed.get("content"),
        "task": proposed.get("task"),
        "reason": ended.get("reason") or proposed.get("reason"),
        "code": ended.get("code"),
        "usage": proposed.get("usage") or ended.get("usage"),
    }


async def awaited(desk: Desk, caller: Caller, process_id: str, wait: float) -> tuple[JsonObject, bool]:
    """An evolution once nothing more happens to it by itself, or as it is after `wait` seconds.

    One that was to be applied and is only proposed says why: the item is not the one that the model was given.
    """

    async def is_settled(process: Process) -> bool:
        if process.status in _ENDED:
            return True
        return process.status == "proposed" and (
            not process.requested["apply"] or await _is_stale(desk, caller, process)
        )

    found, done = await settled(desk, caller, KIND, process_id, is_settled, wait)
    answer = told(found)
    if found.status == "proposed" and found.requested["apply"] and done:
        answer["reason"] = (
            f"{answer['item_id']} is no longer at version {answer['base_version']}, which the model was given, or no "
            "longer for you to read: apply nothing, or ask anew"
        )
    return answer, done


async def get(desk: Desk, caller: Caller, process_id: str) -> JsonObject:
    """One evolution of the caller's. Raises UnknownProcess, ViewBehind, BrokerUnavailable."""
    return told(await own(desk, caller, KIND, process_id))


async def apply(
    desk: Desk, caller: Caller, lineage: Lineage, process_id: str, retry: uuid.UUID | None = None
) -> Decided:
    """Make a proposal the item's content.

    Raises UnknownProcess, IllegalState, UnknownKnowledge, NotOwner, VersionConflict (the item changed), …
    """
    own_id = event_id(retry)
    for _ in range(ATTEMPTS):
        process = await own(desk, caller, KIND, process_id)
        asked = process.requested
        if retry is not None and (before := await _applied(desk, process, own_id)) is not None:
            return before
        item, last, _ = await revisable(desk, caller, asked["item_id"])
        process = await own(desk, caller, KIND, process_id)  # what the item's history tells of it is folded now
        if process.status != "proposed":
            raise _not(process, "applied", "proposed")
        if item.version != asked["base_version"]:
            raise VersionConflict(
                f"{item.id} is at version {item.version}, and the proposal was made from version "
                f"{asked['base_version']}: ask for another one",
                id=item.id,
                current_version=item.version,
            )
        proposed = process.said["proposed"]
        fact = KnowledgeEvolved(
            evolution=process.id,
            base_version=item.version,
            content=proposed["content"],
            task=proposed.get("task"),
        )
        lineage_of = caused(lineage, process)
        event = NewEvent(fact, item.id, process.owner, desk.org, lineage_of, id=own_id, expects=last)
        try:
            (kept,) = await publish(desk.ledger, desk.tally, [event])
        except VersionConflict:
            continue
        return Decided(process.id, "applied", item.id, kept.position, own_id)
    raise VersionConflict(f"others keep writing to the item of {process_id}: try again", id=process_id)


async def _applied(desk: Desk, process: Process, own_id: str) -> Decided | None:
    """What came of an earlier try with the same key."""
    before = await stated(desk, [process.owner], own_id, {"evolution": process.id})
    return None if before is None else Decided(process.id, "applied", before.entity_id, before.position, own_id)


async def reject(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    process_id: str,
    reason: str | None = None,
    retry: uuid.UUID | None = None,
) -> Decided:
    """Keep the item as it is. Raises UnknownProcess, IllegalState, VersionConflict, BrokerUnavailable."""
    await reach_head(desk)
    process = await own(desk, caller, KIND, process_id)
    item_id = process.requested["item_id"]
    fact, own_id = EvolutionRejected(item_id=item_id, reason=reason), event_id(retry)
    if retry is not None and (before := await stated(desk, [process.owner], own_id, said_by(fact))) is not None:
        return Decided(process.id, "rejected", item_id, before.position, own_id)
    if process.status != "proposed":
        raise _not(process, "rejected", "proposed")
    expects = await desk.ledger.last_position_of(desk.org, KIND, process_id)
    event = NewEvent(fact, process.id, process.owner, desk.org, caused(lineage, process), id=own_id, expects=expects)
    (kept,) = await publish(desk.ledger, desk.tally, [event])
    return Decided(process.id, "rejected", item_id, kept.position, event.id)


async def revert(
    desk: Desk, caller: Caller, lineage: Lineage, process_id: str, retry: uuid.UUID | None = None
) -> Decided:
    """Make the item again what it was before an evolution that was applied.

    Raises UnknownProcess, IllegalState, VersionConflict (the item changed since), UnknownKnowledge, NotOwner, …
    """
    await reach_head(desk)
    process = await own(desk, caller, KIND, process_id)
    asked, own_id = process.requested, event_id(retry)
    if retry is not None and (before := await stated(desk, [process.owner], own_id, {"cause": process.id})) is not None:
        return Decided(process.id, "reverted", before.entity_id, before.position, own_id)
    if process.status != "applied":
        raise _not(process, "reverted", "applied")
    done = await revert_item(
        desk,
        caller,
        caused(lineage, process),
        asked["item_id"],
        asked["base_version"],
        expected_version=asked["base_version"] + 1,
        cause=process.id,
        retry=retry,
    )
    return Decided(process.id, "reverted", done.id, done.position, done.event_id)


async def _is_stale(desk: Desk, caller: Caller, process: Process) -> bool:
    """Whether the item is not the one that the model was given; one that the caller may not see any more is not there.

    Asked for the caller: what became of an item that was closed to them meanwhile is not theirs to know.
    """
    asked = process.requested
    found = await desk.view.ask(ask.standings, desk.org, caller, [asked["item_id"]])
    item = found.get(asked["item_id"])
    return item is None or item.version != asked["base_version"] or item.status != "active"


def _not(process: Process, become: str, needed: str) -> IllegalState:
    return IllegalState(
        f"the evolution {process.id} is {process.status}: only one that is {needed} can be {become}",
        id=process.id,
        status=process.status,
    )

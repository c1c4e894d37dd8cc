"""Which items contradict each other, and which of the two holds (mission K6)? Its owner decides."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from kledger.contract.errors import IllegalState, InvalidPayload
from kledger.contract.scopes import Caller
from ledger.event import JsonObject, Lineage, NewEvent
from ledger.events.conflict import ConflictResolved
from ledger.events.knowledge import KnowledgeRetired
from producers.operations.desk import Desk, reach_head
from producers.operations.models.processes import caused, own
from producers.operations.publish import event_id, publish
from producers.operations.stated_before import asked, may_have_stated, stated
from projections.views.knowledge import ask
from projections.views.processes.ask import Process

KIND = "conflict"


@dataclass(frozen=True, slots=True)
class Resolved:
    """What was decided; `retired` is the side that left recall, null when none did."""

    id: str
    status: str
    winner: str | None
    retired: str | None
    position: int


def told(process: Process) -> JsonObject:
    """A conflict as every door tells it: both sides, each as it was then."""
    recorded, resolved = process.requested, process.said.get("resolved", {})
    names = ("first", "first_version", "second", "second_version", "reason", "extraction")
    return {
        **process.told(),
        **{name: recorded.get(name) for name in names},
        "winner": resolved.get("winner"),
        "decision": resolved.get("reason"),
    }


async def get(desk: Desk, caller: Caller, process_id: str) -> JsonObject:
    """One conflict of the caller's. Raises UnknownProcess, ViewBehind, BrokerUnavailable."""
    return told(await own(desk, caller, KIND, process_id))


async def resolve(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    process_id: str,
    winner: str | None,
    reason: str | None = None,
    retry: uuid.UUID | None = None,
) -> Resolved:
    """Decide: the winner holds, and the other side is retired when it is the caller's to retire; or both hold.

    Raises UnknownProcess, InvalidPayload (the winner is neither side), IllegalState, VersionConflict,
    BrokerUnavailable, ViewBehind.
    """
    await reach_head(desk)
    process = await own(desk, caller, KIND, process_id)
    sides = [process.requested["first"], process.requested["second"]]
    if winner is not None and winner not in sides:
        raise InvalidPayload(
            f"{winner[:200]!r} is neither side of {process_id}: name {sides[0]} or {sides[1]}, or nobody",
            errors=[{"field": "winner", "reason": "is neither side"}],
        )
    own_id, gone_id = event_id(retry, "resolved"), event_id(retry, "retired")
    loser = next((side for side in sides if winner is not None and side != winner), "")
    item = (await desk.view.ask(ask.standings, desk.org, caller, [loser])).get(loser)
    fact = ConflictResolved(winner=winner, reason=reason)
    if retry is not None and (before := await stated(desk, [process.owner], own_id, asked(fact))) is not None:
        gone = await stated(desk, await may_have_stated(desk, caller, loser), gone_id, {})
        return Resolved(process_id, "resolved", winner, loser if gone else None, (gone or before).position)
    if process.status != "recorded":
        raise IllegalState(f"the conflict {process_id} is {process.status} already", id=process_id)
    why = caused(lineage, process)
    expects = await desk.ledger.last_position_of(desk.org, KIND, process_id)
    events = [NewEvent(fact, process_id, process.owner, desk.org, why, id=own_id, expects=expects)]
    if item is not None and item.status == "active" and caller.may_act_for(item.owner):
        retired = KnowledgeRetired(reason=reason or f"{winner} holds instead")
        events.append(NewEvent(retired, item.id, item.owner, desk.org, why, id=gone_id))
    kept = await publish(desk.ledger, desk.tally, events)
    return Resolved(process_id, "resolved", winner, loser if len(events) > 1 else None, kept[-1].position)

"""Conflicts between two items: list, read, and resolve by the owner."""

from __future__ import annotations

import uuid

from kledger.answers.models import Resolved
from kledger.contract.errors import IllegalState, InvalidPayload
from kledger.contract.scopes import Caller
from ledger.event import JsonObject, Lineage, NewEvent
from ledger.events.conflict import ConflictResolved
from ledger.events.knowledge import KnowledgeRetired
from producers.operations.desk import Desk, reach_head
from producers.operations.models.processes import caused, own
from producers.operations.publish import event_id, publish
from producers.operations.stated_before import earlier_event, past_actors, request_fields
from projections.views.knowledge import ask
from projections.views.processes.ask import Process

KIND = "conflict"


def shown(process: Process) -> JsonObject:
    """A conflict as JSON for every interface: both items in the versions that contradict each other."""
    recorded, resolved = process.requested, process.said.get("resolved", {})
    names = ("first", "first_version", "second", "second_version", "reason", "extraction")
    return {
        **process.shown(),
        **{name: recorded.get(name) for name in names},
        "winner": resolved.get("winner"),
        "decision": resolved.get("reason"),
    }


async def resolve(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    process_id: str,
    winner: str | None,
    reason: str | None = None,
    retry: uuid.UUID | None = None,
) -> Resolved:
    """Resolve a conflict: the winner stays, the other item is retired where the caller may do so; or both stay.

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
    resolved_id, retired_id = event_id(retry, "resolved"), event_id(retry, "retired")
    loser = next((side for side in sides if winner is not None and side != winner), "")

    def resolved(retires: bool, position: int) -> Resolved:
        retired = loser if retires else None
        return Resolved(id=process_id, status="resolved", winner=winner, retired=retired, position=position)

    item = (await desk.view.ask(ask.standings, desk.org, caller, [loser])).get(loser)
    fact = ConflictResolved(winner=winner, reason=reason)
    if (
        retry is not None
        and (before := await earlier_event(desk, [process.owner], resolved_id, request_fields(fact))) is not None
    ):
        retirement = await earlier_event(desk, await past_actors(desk, caller, loser), retired_id, {})
        return resolved(retirement is not None, (retirement or before).position)
    if process.status != "recorded":
        raise IllegalState(f"the conflict {process_id} is {process.status} already", id=process_id)
    decision_lineage = caused(lineage, process)
    expects = await desk.ledger.last_position_of(desk.org, KIND, process_id)
    events = [NewEvent(fact, process_id, process.owner, desk.org, decision_lineage, id=resolved_id, expects=expects)]
    if item is not None and item.status == "active" and caller.may_act_for(item.owner):
        retired = KnowledgeRetired(reason=reason or f"{winner} holds instead")
        events.append(NewEvent(retired, item.id, item.owner, desk.org, decision_lineage, id=retired_id))
    appended = await publish(desk.ledger, desk.tally, events)
    return resolved(len(events) > 1, appended[-1].position)

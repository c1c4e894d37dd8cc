"""Conflicts between two items: list, read, and resolve by the owner."""

from __future__ import annotations

import uuid
from dataclasses import replace

from kledger.answers.models import Resolved
from kledger.contract.errors import IllegalState, InvalidPayload, NotOwner, SubjectForgotten
from kledger.contract.scopes import Caller
from kledger.requests.models import ResolveRequest
from ledger.event import JsonObject, Lineage, NewEvent
from ledger.events.conflict import ConflictResolved
from ledger.events.knowledge import KnowledgeRetired, KnowledgeRevised
from producers.operations.desk import Desk, folded
from producers.operations.knowledge.over import is_over
from producers.operations.knowledge.task_of_content import with_its_task
from producers.operations.knowledge.whose import changer
from producers.operations.models.processes import caused, own_now
from producers.operations.publish import event_id, mismatch, publish
from producers.operations.stated_before import earlier_event, past_actors, request_fields
from projections.views.knowledge import ask
from projections.views.processes.ask import Process

KIND = "conflict"
_HOLDING = ("active", "proposed")


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
    payload: ResolveRequest,
    retry: uuid.UUID | None = None,
) -> Resolved:
    """Resolve a conflict: the winner stays, the other item is retired where the caller may do so; or both stay.

    With `merge` the winner, which the caller has to own, is revised to say both. All of it can be taken back: `revert`
    of the winner, `restore` of the other item.

    Raises UnknownProcess, InvalidPayload (the winner is neither side), NotOwner, IllegalState (it is decided, or the
    winner is out of recall), VersionConflict, BrokerUnavailable, ViewBehind.
    """
    process, expects = await own_now(desk, caller, KIND, process_id)
    winner, sides = payload.winner, [process.requested["first"], process.requested["second"]]
    if winner is not None and winner not in sides:
        raise InvalidPayload(
            f"{winner[:200]!r} is neither side of {process_id}: name {sides[0]} or {sides[1]}, or nobody",
            errors=[{"field": "winner", "reason": "is neither side"}],
        )
    loser = next((side for side in sides if winner is not None and side != winner), "")
    fact = ConflictResolved(winner=winner, reason=payload.reason)
    if (before := await _before(desk, caller, process, payload, loser, fact, retry)) is not None:
        return before
    if process.status != "recorded":
        raise IllegalState(f"the conflict {process_id} is {process.status} already", id=process_id)
    ids = _ids(retry)
    by = caused(lineage, process)
    events = [NewEvent(fact, process_id, process.owner, desk.org, by, id=ids["resolved"], expects=expects)]
    lasts = {side: await folded(desk, "knowledge", side) for side in (loser, winner) if side}
    standing = await desk.view.ask(ask.standings, desk.org, caller, [*lasts])
    kept = standing.get(winner or "")
    await _refuse_gone(desk, kept)
    if (revision := _revision(payload)) is not None:
        actor = await changer(desk, caller, kept) if kept is not None and kept.status == "active" else None
        if kept is None or actor is None:
            raise NotOwner(f"{winner} is not an active item of yours: merge into the side that is", id=winner)
        revision = await with_its_task(desk, kept, revision)
        events.append(NewEvent(revision, kept.id, actor, desk.org, by, id=ids["merged"], expects=lasts[kept.id]))
    item = standing.get(loser)
    held = item is not None and item.status in _HOLDING
    if item is not None and held and (actor := await changer(desk, caller, item)) is not None:
        retired = KnowledgeRetired(reason=payload.reason or f"{winner} holds instead")
        last = lasts[item.id]
        events.append(NewEvent(retired, item.id, actor, desk.org, by, id=ids["retired"], expects=last))
    try:
        appended = await publish(desk.ledger, desk.tally, events)
    except SubjectForgotten:
        if payload.reason is not None or not isinstance(events[-1].fact, KnowledgeRetired):
            raise
        # Nothing more is said under the name of somebody who was forgotten, not even why their item is retired.
        events[-1] = replace(events[-1], fact=KnowledgeRetired())
        appended = await publish(desk.ledger, desk.tally, events)
    gone = loser if isinstance(events[-1].fact, KnowledgeRetired) else None
    return _resolved(process_id, winner, gone, revision is not None, appended[-1].position)


async def _refuse_gone(desk: Desk, winner: ask.Standing | None) -> None:
    """Raise IllegalState for a side that cannot hold, as it is out of recall: the decision would leave neither."""
    if winner is None:
        return
    status = "expired" if winner.status == "active" and await is_over(desk, winner.id) else winner.status
    if status not in _HOLDING:
        raise IllegalState(
            f"{winner.id} is {status}, and what holds has to be in force: restore it first, or let the other side hold",
            id=winner.id,
            status=status,
        )


def _resolved(process_id: str, winner: str | None, retired: str | None, merged: bool, position: int) -> Resolved:
    return Resolved(id=process_id, status="resolved", winner=winner, retired=retired, merged=merged, position=position)


def _ids(retry: uuid.UUID | None) -> dict[str, str]:
    """The ids of all events that a decision can have."""
    return {part: event_id(retry, part) for part in ("resolved", "merged", "retired")}


def _revision(payload: ResolveRequest) -> KnowledgeRevised | None:
    """What the winner says from now on, where both sides are merged."""
    if payload.merge is None:
        return None
    return KnowledgeRevised(task=payload.merge.task, content=payload.merge.content, reason=payload.reason)


async def _before(
    desk: Desk,
    caller: Caller,
    process: Process,
    payload: ResolveRequest,
    loser: str,
    fact: ConflictResolved,
    retry: uuid.UUID | None,
) -> Resolved | None:
    """The decision of an earlier request with the key. Raises IdempotencyMismatch where that was another one."""
    if retry is None:
        return None
    ids = _ids(retry)
    resolved = await earlier_event(desk, [process.owner], ids["resolved"], request_fields(fact))
    if resolved is None:
        return None
    revision = _revision(payload)
    fields = {} if revision is None else request_fields(revision)
    merged = await earlier_event(desk, await past_actors(desk, caller, payload.winner or ""), ids["merged"], fields)
    if (merged is None) != (revision is None):
        raise mismatch()
    retired = await earlier_event(desk, await past_actors(desk, caller, loser), ids["retired"], {})
    last = (retired or merged or resolved).position
    return _resolved(process.id, payload.winner, loser if retired else None, merged is not None, last)

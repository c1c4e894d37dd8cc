"""Decisions on held statements: listed, released (saved as they were stated), or dropped.

A release and the save are one atomic batch: a node that is killed leaves both or none.
"""

from __future__ import annotations

import uuid

from kledger.answers.memory import DecidedHeld
from kledger.contract.documents import CHUNK, ITEM_TYPE
from kledger.contract.errors import Erased, IllegalState, InvalidPayload, UnknownProcess, VersionConflict
from kledger.contract.projects import scope_of
from kledger.contract.scopes import Caller
from kledger.requests.memory import DecideHeldRequest
from ledger.event import JsonObject, Lineage, NewEvent
from ledger.events.knowledge import KnowledgeSaved
from ledger.events.statement import Parts, StatementDropped, StatementHeld, StatementReleased
from ledger.named_ids import named_id
from producers.operations.desk import ANY, Desk, Freshness, first_entity, folded, reach, reach_head
from producers.operations.first_cases import with_its_cases
from producers.operations.judged import refuse_refused
from producers.operations.knowledge.acl import shared_with_it
from producers.operations.knowledge.proposing import first_status
from producers.operations.knowledge.saving import exists
from producers.operations.models.processes import caused
from producers.operations.outcomes import ATTEMPTS, listed
from producers.operations.publish import NAMESPACE, event_id, publish_judged, refuse_unkeepable
from producers.operations.stated_before import earlier_event, request_fields, same_statement
from projections.fold_kit.page import Page
from projections.views.documents import ask as documents
from projections.views.knowledge import ask as knowledge
from projections.views.processes import ask as processes
from projections.views.processes.ask import Process
from projections.views.projects import ask as projects
from projections.views.tombstones import ask
from projections.views.tombstones.ask import Wanted

KIND = "statement"
_Decision = type[StatementReleased | StatementDropped]


async def held(desk: Desk, caller: Caller, wanted: Wanted, *, freshness: Freshness = ANY) -> JsonObject:
    """A page of the held statements that the caller may decide on (HeldList), the latest first. Raises ViewBehind."""
    await reach(desk, freshness)
    position = desk.view.position
    rows, total = await _held(desk, caller, wanted)
    following = wanted.offset + len(rows)
    return listed(Page(rows, total, following if following < total else None), position)


async def _held(desk: Desk, caller: Caller, wanted: Wanted) -> tuple[list[JsonObject], int]:
    coordinated = []
    if not caller.is_operator:
        coordinated = await desk.view.ask(projects.coordinated, desk.org, caller.entities())
    return await desk.view.ask(ask.held, desk.org, caller, [*map(scope_of, coordinated)], wanted)


async def release(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    held_id: str,
    payload: DecideHeldRequest,
    retry: uuid.UUID | None = None,
) -> DecidedHeld:
    """Release a held statement: it is saved as it was stated, in its owner's name, unless its item is there already.

    Raises UnknownProcess, IllegalState (it was decided, or its document says it no longer), Erased, KnowledgeExists
    (the id says something else by now), NotOwner (its owner may not propose it to a project any more), VersionConflict,
    BrokerUnavailable, ViewBehind.
    """
    return await _decide(desk, caller, lineage, held_id, payload, StatementReleased, retry)


async def drop(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    held_id: str,
    payload: DecideHeldRequest,
    retry: uuid.UUID | None = None,
) -> DecidedHeld:
    """Drop a held statement: it is not saved, and said again it is not held once more. Raises as `release`."""
    return await _decide(desk, caller, lineage, held_id, payload, StatementDropped, retry)


async def _decide(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    held_id: str,
    payload: DecideHeldRequest,
    decision: _Decision,
    retry: uuid.UUID | None,
) -> DecidedHeld:
    own_id = event_id(retry)
    for _ in range(ATTEMPTS):
        last = await folded(desk, KIND, held_id)
        process = await desk.view.ask(processes.process, desk.org, KIND, held_id)
        if process is None:
            raise _unknown(held_id)
        fact = decision(by=first_entity(caller), item_id=process.requested["item_id"], reason=payload.reason)
        if retry is not None:
            before = await earlier_event(desk, [process.owner], own_id, request_fields(fact))
            if before is not None:
                return _decided(process, fact.verb(), before.position, own_id)
        if not (await _held(desk, caller, Wanted(held_id=held_id)))[0]:
            raise _unknown(held_id)
        if process.status != "held":
            raise IllegalState(f"{held_id} is {process.status} already", id=held_id, status=process.status)
        by = caused(lineage, process)
        events = await _saves(desk, process) if decision is StatementReleased else []
        events.append(NewEvent(fact, held_id, process.owner, desk.org, by, id=own_id, expects=last))
        try:
            for event in events:
                refuse_unkeepable(event.fact)
            appended = await publish_judged(desk.ledger, desk.tally, events)
        except VersionConflict:
            continue
        await refuse_refused(desk, [each.position for each in appended])
        return _decided(process, fact.verb(), appended[-1].position, own_id)
    raise VersionConflict(f"others keep deciding on {held_id}: read it again", id=held_id)


async def _saves(desk: Desk, process: Process) -> list[NewEvent]:
    """The events that save a held statement as it was stated; none where the item is there and says it."""
    knowledge_id, saved, shared, cases = _parts(process)
    await first_status(desk, saved, shared)
    if saved.types == [ITEM_TYPE] and knowledge_id.startswith(CHUNK):
        await _refuse_outlived(desk, process, knowledge_id, saved)
    last = await folded(desk, "knowledge", knowledge_id)
    taken = (await desk.view.ask(knowledge.saved_statements, desk.org, [knowledge_id])).get(knowledge_id)
    if taken is not None:
        if same_statement(saved, shared, taken):
            return []
        raise exists(knowledge_id)
    lineage = caused(Lineage(process.trace_id, process.message_id), process)
    own_id = named_id(NAMESPACE, f"{desk.org}\n{process.id}\nsaved")
    event = NewEvent(saved, knowledge_id, process.owner, desk.org, lineage, id=own_id, expects=last)
    return [event, *shared_with_it(event, shared), *with_its_cases(event, cases)]


async def _refuse_outlived(desk: Desk, process: Process, knowledge_id: str, saved: KnowledgeSaved) -> None:
    """Raise IllegalState for a chunk that no document says any more, or that its document says to other readers."""
    await reach_head(desk)
    scopes = await desk.view.ask(documents.scopes_of_chunk, desk.org, saved.owner, knowledge_id)
    if not scopes:
        what = f"no document of {saved.owner} says it any more: drop it"
    elif any(set(each) != set(saved.scopes) for each in scopes):
        what = "the document has other scopes by now: drop it, and save what it says for those whom it is meant for"
    else:
        return
    raise IllegalState(f"{process.id} holds a chunk of a document, and {what}", id=process.id, status="held")


def _parts(process: Process) -> Parts:
    """What was to be saved. Raises Erased, InvalidPayload (a publisher of its own stated something else)."""
    if not process.requested["statement"]:
        raise Erased(
            f"what {process.id} said was erased with the person it belonged to: it can only be dropped", id=process.id
        )
    try:
        parts = StatementHeld.model_validate(process.requested).parts()
    except (ValueError, TypeError) as error:
        raise InvalidPayload(f"what {process.id} holds is no item: drop it", errors=[]) from error
    if parts.saved.owner != process.owner:
        raise InvalidPayload(f"{process.id} is of {process.owner}, its item of {parts.saved.owner}: drop it", errors=[])
    return parts


def _unknown(held_id: str) -> UnknownProcess:
    return UnknownProcess(
        f"there is no held statement {held_id[:200]!r} that you may decide on: check the id and as whom you ask",
        id=held_id,
    )


def _decided(process: Process, verb: str, position: int, own_id: str) -> DecidedHeld:
    released = verb == "released"
    return DecidedHeld(
        id=process.id,
        status="released" if released else "dropped",
        knowledge_id=process.requested["statement"].get("id") if released else None,
        position=position,
        event_id=own_id,
    )

"""Decisions on proposals: a coordinator takes a memory into what the project shares, or declines it."""

from __future__ import annotations

import uuid

from kledger.answers.memory import DecidedProposal
from kledger.contract.errors import IllegalState, NotOwner, VersionConflict
from kledger.contract.scopes import Caller
from kledger.requests.memory import DecideRequest
from ledger.event import Lineage, NewEvent
from ledger.events.knowledge import KnowledgeApproved, KnowledgeRejected
from ledger.item_status import MAKES
from ledger.readers import readers
from producers.operations.desk import Desk, folded
from producers.operations.judged import refuse_refused
from producers.operations.knowledge.changes import latest, refuse_other_version, refuse_status
from producers.operations.knowledge.superseding import Superseding, came_of, supersede
from producers.operations.knowledge.whose import coordinator, shared_in, with_their_projects
from producers.operations.outcomes import ATTEMPTS, others_write_to
from producers.operations.publish import event_id, publish
from producers.operations.stated_before import earlier_event
from projections.views.knowledge import ask
from projections.views.knowledge.ask import Standing


async def approve(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    item_id: str,
    payload: DecideRequest,
    retry: uuid.UUID | None = None,
) -> DecidedProposal:
    """Approve a proposal. Where it names the item of which it is a later version, that one is superseded, or the two
    are in conflict, in the same atomic batch.

    Raises UnknownKnowledge, NotOwner (no coordinator of its projects), IllegalState (no proposal), VersionConflict,
    BrokerUnavailable, ViewBehind.
    """
    return await _decide(desk, caller, lineage, item_id, payload, KnowledgeApproved, retry)


async def reject(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    item_id: str,
    payload: DecideRequest,
    retry: uuid.UUID | None = None,
) -> DecidedProposal:
    """Decline a proposal, with a reason that its author reads; a revision proposes it anew. Raises as `approve`."""
    return await _decide(desk, caller, lineage, item_id, payload, KnowledgeRejected, retry)


async def _decide(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    item_id: str,
    payload: DecideRequest,
    decision: type[KnowledgeApproved | KnowledgeRejected],
    retry: uuid.UUID | None,
) -> DecidedProposal:
    own_id = event_id(retry)
    seeing = await with_their_projects(desk, caller)
    if retry is not None:
        await folded(desk, "knowledge", item_id)
        stated = payload.model_dump(exclude_none=True)
        if (before := await earlier_event(desk, caller.reading_as(), own_id, stated)) is not None:
            came = await came_of(desk, seeing, item_id, own_id)
            return _decided(item_id, decision, came, max(before.position, came.position), own_id)
    for _ in range(ATTEMPTS):
        item, last = await latest(desk, seeing, item_id)
        actor = await _decider(desk, caller, item)
        refuse_other_version(item, payload.expected_version)
        fact = decision(expected_version=item.version, reason=payload.reason)
        refuse_status(fact, item)
        events = [NewEvent(fact, item_id, actor, desk.org, lineage, id=own_id, expects=last)]
        came = Superseding()
        later = await desk.view.ask(ask.item, desk.org, seeing, item_id)
        if decision is KnowledgeApproved and later is not None:
            came = await supersede(desk, caller, seeing, lineage, later, actor, own_id)
            events += [] if came.event is None else [came.event]
        try:
            appended = await publish(desk.ledger, desk.tally, events)
        except VersionConflict:
            continue
        await refuse_refused(desk, [each.position for each in appended])
        return _decided(item_id, decision, came, appended[-1].position, own_id)
    raise others_write_to(item_id)


async def _decider(desk: Desk, caller: Caller, item: Standing) -> str:
    projects = shared_in(item)
    if not projects:
        raise IllegalState(
            f"{item.id} is nothing that a project shares: its kind is {item.kind or 'not stated'}, and its readers are "
            f"{', '.join(readers(item.scopes, item.shared_with, item.owner))}",
            id=item.id,
        )
    for project in projects:  # a role may have been given a moment ago
        await folded(desk, "project", project)
    actor = await coordinator(desk, caller, item)
    if actor is None:
        if caller.is_operator:
            raise NotOwner(
                f"a coordinator of {', '.join(projects)} decides on {item.id}: appoint one, user:local if it is to be "
                f"you (kledger project coordinator {projects[0]} user:local)",
                id=item.id,
            )
        raise NotOwner(
            f"a coordinator of {', '.join(projects)} decides on {item.id}, and {' or '.join(caller.reading_as())} is "
            f"none: the operator appoints one (kledger project coordinator {projects[0]} …)",
            id=item.id,
        )
    return actor


def _decided(
    item_id: str,
    decision: type[KnowledgeApproved | KnowledgeRejected],
    came: Superseding,
    position: int,
    own_id: str,
) -> DecidedProposal:
    return DecidedProposal(
        id=item_id,
        status=MAKES[decision.name],
        superseded=came.superseded,
        conflict=came.conflict,
        position=position,
        event_id=own_id,
    )

"""Members of a project and their roles: the operator and the project's coordinators give them."""

from __future__ import annotations

import uuid

from kledger.answers.projects import AssignedMember
from kledger.contract.errors import InvalidPayload, NotOwner, VersionConflict
from kledger.contract.projects import COORDINATOR, scope_of
from kledger.contract.scopes import OPERATOR, Caller
from kledger.contract.words import ProjectRole
from kledger.requests.projects import MemberRequest
from ledger.event import JsonObject, Lineage, NewEvent
from ledger.events.project import ProjectMemberAssigned
from producers.operations.desk import ANY, Desk, Freshness, folded, reach
from producers.operations.judged import refuse_refused
from producers.operations.outcomes import ATTEMPTS
from producers.operations.publish import event_id, publish
from producers.operations.stated_before import earlier_event, request_fields
from projections.views.projects import ask


async def listed(desk: Desk, caller: Caller, project: str, *, freshness: Freshness = ANY) -> JsonObject:
    """The members of a project with a role (ProjectMembers), for the operator and whoever is of the project.

    Raises NotOwner, InvalidPayload (no id of a project), ViewBehind.
    """
    _check(project)
    await reach(desk, freshness)
    position = desk.view.position
    members = await desk.view.ask(ask.members, desk.org, project)
    entities = caller.entities()
    shown_to = {scope_of(project), *(each["member"] for each in members)}
    if not caller.is_operator and shown_to.isdisjoint(entities):
        raise NotOwner(
            f"you are {', '.join(entities)}, and the members of {scope_of(project)} are shown to those of the project: "
            f"ask as {scope_of(project)}, in the X-Ledger headers",
            owner=scope_of(project),
        )
    return {"project": project, "members": members, "position": position}


async def appoint(
    desk: Desk, caller: Caller, lineage: Lineage, project: str, entity: str, retry: uuid.UUID | None = None
) -> AssignedMember:
    """Make a user or an agent a coordinator of a project, beside the roles that it has. Raises as `assign`."""
    _check(project)
    own_id = event_id(retry)
    for _ in range(ATTEMPTS):
        last = await folded(desk, "project", project)
        if retry is not None:
            before = await earlier_event(desk, caller.reading_as(), own_id, {"member": entity})
            if before is not None:
                return _assigned(project, entity, before.data["roles"], before.position, own_id)
        roles = await desk.view.ask(ask.roles, desk.org, entity, [project])
        together: list[ProjectRole] = list(dict.fromkeys([COORDINATOR, *roles.get(project, ())]))
        fact = ProjectMemberAssigned(member=entity, roles=together)
        try:
            position = await _state(desk, caller, lineage, project, fact, own_id, last)
        except VersionConflict:
            continue
        return _assigned(project, entity, together, position, own_id)
    raise VersionConflict(f"others keep giving roles in {project}: try again")


async def assign(
    desk: Desk, caller: Caller, lineage: Lineage, project: str, payload: MemberRequest, retry: uuid.UUID | None = None
) -> AssignedMember:
    """State all roles of a user or an agent in a project.

    Raises NotOwner (neither the operator nor a coordinator of it), InvalidPayload (no id of a project),
    BrokerUnavailable, ViewBehind.
    """
    _check(project)
    roles: list[ProjectRole] = list(dict.fromkeys(payload.roles))
    fact = ProjectMemberAssigned(member=payload.entity, roles=roles)
    own_id = event_id(retry)
    await folded(desk, "project", project)
    if retry is not None:
        before = await earlier_event(desk, caller.reading_as(), own_id, request_fields(fact))
        if before is not None:
            return _assigned(project, payload.entity, roles, before.position, own_id)
    position = await _state(desk, caller, lineage, project, fact, own_id)
    return _assigned(project, payload.entity, roles, position, own_id)


async def _state(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    project: str,
    fact: ProjectMemberAssigned,
    own_id: str,
    expects: int | None = None,
) -> int:
    actor = OPERATOR if caller.is_operator else await _coordinator(desk, caller, project)
    event = NewEvent(fact, project, actor, desk.org, lineage, id=own_id, expects=expects)
    (appended,) = await publish(desk.ledger, desk.tally, [event])
    await refuse_refused(desk, [appended.position])
    return appended.position


def _assigned(project: str, member: str, roles: list[ProjectRole], position: int, own_id: str) -> AssignedMember:
    return AssignedMember(project=project, member=member, roles=roles, position=position, event_id=own_id)


async def _coordinator(desk: Desk, caller: Caller, project: str) -> str:
    coordinators = await desk.view.ask(ask.coordinators, desk.org, [project])
    actor = next((each for each in caller.entities() if each in coordinators), None)
    if actor is None:
        raise NotOwner(
            f"you are {', '.join(caller.entities())}, and who does what in {scope_of(project)} is said by its "
            "coordinators and by the operator of the node: ask without an identity",
            owner=scope_of(project),
        )
    return actor


def _check(project: str) -> None:
    if (fault := ProjectMemberAssigned.fault_of_id(project)) is not None:
        raise InvalidPayload(
            f"{project[:200]!r} {fault}", errors=[{"field": "project_id", "reason": "is not the id of a project"}]
        )

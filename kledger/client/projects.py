"""Requests about the members of a project and their roles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kledger.client.faces import Endpoint
from kledger.client.wire import Wire, segment
from kledger.contract.words import ProjectRole

if TYPE_CHECKING:
    from kledger.answers.projects import AssignedMember, ProjectMembers

PROJECTS = "/api/projects"


async def project_members(wire: Wire, project: str) -> ProjectMembers:
    """The members of a project that have a role; for those of the project and the operator (else NotOwner)."""
    return await wire.read(f"{PROJECTS}/{segment(project)}/members")


async def appoint_coordinator(
    wire: Wire, project: str, entity: str, *, idempotency_key: str | None = None
) -> AssignedMember:
    """Make a user or an agent (`agent:lead`) a coordinator of a project: they decide on what it shares.

    The operator and the coordinators of the project do (else NotOwner).
    """
    path = f"{PROJECTS}/{segment(project)}/coordinators"
    return await wire.write("POST", path, {"entity": entity}, idempotency_key=idempotency_key)


async def assign_roles(
    wire: Wire, project: str, entity: str, roles: Sequence[ProjectRole], *, idempotency_key: str | None = None
) -> AssignedMember:
    """State all roles of a user or an agent in a project; none takes them away.

    A member with roles proposes the kinds of these roles; one without any proposes all. Otherwise as
    `appoint_coordinator`.
    """
    body = {"entity": entity, "roles": list(roles)}
    path = f"{PROJECTS}/{segment(project)}/members"
    return await wire.write("POST", path, body, idempotency_key=idempotency_key)


class ProjectEndpoints:
    """Who does what in a project."""

    project_members = Endpoint(project_members)
    appoint_coordinator = Endpoint(appoint_coordinator)
    assign_roles = Endpoint(assign_roles)

"""Request bodies about the members of a project."""

from __future__ import annotations

from kledger.contract.projects import Member, Roles
from kledger.requests.body import Asked


class CoordinatorRequest(Asked):
    """A user or an agent that coordinates the project from now on, beside the roles that it has."""

    entity: Member


class MemberRequest(Asked):
    """All roles of a user or an agent in the project; none takes them away."""

    entity: Member
    roles: Roles

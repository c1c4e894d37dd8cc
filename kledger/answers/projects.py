"""Answers about the members of a project and their roles."""

from __future__ import annotations

from typing_extensions import TypedDict

from kledger.answers.parts import Answered, KeptAt, Position
from kledger.contract.words import ProjectRole


class ProjectMember(TypedDict):
    """A member of a project with a role; `actor` said so, in the event at `position`."""

    member: str
    roles: list[ProjectRole]
    actor: str
    position: int


class ProjectMembers(Answered):
    """The members of a project that have a role, by name."""

    project: str
    members: list[ProjectMember]
    position: Position


class AssignedMember(TypedDict):
    """A member whose roles were stated; with no role, they are taken away."""

    project: str
    member: str
    roles: list[ProjectRole]
    position: KeptAt
    event_id: str

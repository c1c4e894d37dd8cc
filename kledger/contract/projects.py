"""Shared memory of a project: which memories it is, who proposes which kind, and for whom a kind is meant.

A memory of one of the shared kinds that a project reads is a proposal until a coordinator of the project approves it.
The roles by kind are the table of source 004, section 2.4.1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Annotated, get_args

from pydantic import AfterValidator, Field

from kledger.contract.scope_fields import SeenEntity
from kledger.contract.scopes import PERSONAL, type_of
from kledger.contract.words import ProjectRole, SharedKind

SHARED_KINDS: tuple[SharedKind, ...] = get_args(SharedKind)
COORDINATOR: ProjectRole = "coordinator"
PROPOSED_BY: Mapping[SharedKind, tuple[ProjectRole, ...]] = {
    "project_context": (),
    "adr": ("architect",),
    "convention": ("reviewer",),
    "known_issue": ("tester",),
    "user_preference": get_args(ProjectRole),
}
"""The roles that propose a kind, beside the coordinator, who may propose all. A member without a role may too."""
MEANT_FOR: Mapping[SharedKind, tuple[ProjectRole, ...]] = {
    "project_context": get_args(ProjectRole),
    "adr": ("developer", "tester"),
    "convention": ("developer",),
    "known_issue": ("developer", "operations"),
    "user_preference": get_args(ProjectRole),
}
"""The roles that a kind is meant for. Everybody in the project may read all of it."""
SUPERSEDING_MARGIN = 0.2
"""A later version of a fact is in force unless its confidence is lower by this or more: then it is a conflict."""
_PROJECT = "project"


def _one_alone(entity: str) -> str:
    if type_of(entity) not in PERSONAL:
        raise ValueError(f"{entity} is a group: a role is given to a user or an agent")
    return entity


Member = Annotated[SeenEntity, AfterValidator(_one_alone)]
Roles = Annotated[list[ProjectRole], Field(max_length=len(get_args(ProjectRole)))]


def scope_of(project: str) -> str:
    """The scope of a project with this id."""
    return f"{_PROJECT}:{project}"


def projects_among(readers: Iterable[str]) -> list[str]:
    """The ids of the projects among the readers of an item, each once."""
    return list(dict.fromkeys(each.partition(":")[2] for each in readers if type_of(each) == _PROJECT))


def is_shared_kind(kind: str | None) -> bool:
    """Whether memories of a kind need approval where a project reads them."""
    return kind in SHARED_KINDS


def may_propose(kind: str, roles: Collection[str]) -> bool:
    """Whether a member with these roles in a project may propose a memory of a shared kind there."""
    proposing = next((by for shared, by in PROPOSED_BY.items() if shared == kind), ())
    return not roles or COORDINATOR in roles or not set(proposing).isdisjoint(roles)


def meant_for(role: ProjectRole) -> list[SharedKind]:
    """The shared kinds that are meant for a role; a coordinator's are all of them."""
    return [kind for kind, roles in MEANT_FOR.items() if role == COORDINATOR or role in roles]

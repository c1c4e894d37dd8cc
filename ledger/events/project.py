"""Events of a project: who does what in it, as far as shared memory asks.

The entity id is the project's: `ledger` for the scope `project:ledger`. The operator and the project's coordinators
publish these.
"""

from __future__ import annotations

from typing import ClassVar

from kledger.contract.entities import is_entity
from kledger.contract.projects import Member, Roles, scope_of
from ledger.event import Example, Fact
from ledger.events.examples import COORDINATOR


class ProjectMemberAssigned(Fact):
    """The roles of a member in a project, all of them; with none, the member has no role there any more."""

    name: ClassVar[str] = "project.member_assigned"
    personal: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[Example] = Example("ledger", "user:local", member=COORDINATOR, roles=["coordinator"])

    member: Member
    roles: Roles

    @classmethod
    def fault_of_id(cls, entity_id: str) -> str | None:
        """The fault of an id with which `project:{id}` would be no scope."""
        return None if is_entity(scope_of(entity_id)) else "is not the id of a project: project:{id} has to be a scope"


FACTS: tuple[type[Fact], ...] = (ProjectMemberAssigned,)

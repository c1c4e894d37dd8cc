"""Events of scope types: kinds of scopes beside the built-in ones, registered by the operator.

The entity id is the type itself, for example `department`. Registering it again changes its priority.
"""

from __future__ import annotations

from typing import ClassVar

from kledger.contract.bounds import Priority, TypeWord
from ledger.event import Example, Fact


class ScopeTypeRegistered(Fact):
    """A type of scope is in use; `priority` places it among user 6, project 5, agent 4, team 3, org 2, public 1."""

    name: ClassVar[str] = "scope_type.registered"
    personal: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[Example] = Example("department", "user:local", type="department", priority=2.5)

    type: TypeWord
    priority: Priority

    def stated_id(self) -> str:
        """The type, which the subject has to match."""
        return self.type


FACTS: tuple[type[Fact], ...] = (ScopeTypeRegistered,)

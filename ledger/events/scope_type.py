"""Which kinds of scopes are there beside the built-in ones (mission S4)? The operator registers them.

The entity id is the type itself: `department`. Registering it again gives it another priority.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from kledger.contract.entities import TYPE_PATTERN
from ledger.event import Fact
from ledger.events.bounds import UNSIGNED_ZERO

TypeWord = Annotated[str, Field(pattern=TYPE_PATTERN)]
Priority = Annotated[float, Field(ge=0.0, le=10.0, allow_inf_nan=False), UNSIGNED_ZERO]


class ScopeTypeRegistered(Fact):
    """A type of scope is in use; `priority` places it among user 6, project 5, agent 4, team 3, org 2, public 1."""

    name: ClassVar[str] = "scope_type.registered"

    type: TypeWord
    priority: Priority

    def stated_id(self) -> str:
        """The type; the subject must say the same."""
        return self.type


FACTS: tuple[type[Fact], ...] = (ScopeTypeRegistered,)

"""Event of a forgotten person.

The entity id is the person, `user:alice`. The destroyed key makes their texts unreadable, not this event: it makes
every node erase its derived data, and is a record for auditors of when and under which receipt. Only a node publishes
it, and it counts only where the vault has the tombstone that it names.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from kledger.contract.scope_fields import Entity
from ledger.event import Example, Fact
from ledger.events.examples import USER


class SubjectForgotten(Fact):
    """The person's key was destroyed; `receipt` is the id of the receipt that says what was removed where.

    Only a node states it: from anybody else it is refused.
    """

    name: ClassVar[str] = "subject.forgotten"
    personal: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[Example] = Example(USER, "user:local", subject=USER, receipt="forget-20260305-0f3a9c21d7e4")

    subject: Entity
    receipt: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,80}$")]

    def stated_id(self) -> str:
        """The person, which the subject has to match."""
        return self.subject


FACTS: tuple[type[Fact], ...] = (SubjectForgotten,)

"""What happened to the person behind the data (mission: forgetting works): the person was forgotten.

The entity id is the person, `user:alice`. What makes their words unreadable is the destroyed key, not this event:
it tells every node to cleanse what it keeps, and an auditor when and under which receipt. Only a node states it: it
counts where the vault has the tombstone that it names.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from kledger.contract.scopes import Entity
from ledger.event import Fact


class SubjectForgotten(Fact):
    """The person's key was destroyed; `receipt` is the id of the receipt that says what was removed where.

    Only a node states it: from anybody else it is refused.
    """

    name: ClassVar[str] = "subject.forgotten"

    subject: Entity
    receipt: Annotated[str, Field(pattern=r"^[a-z0-9-]{1,80}$")]

    def stated_id(self) -> str:
        """The person; the subject must say the same."""
        return self.subject


FACTS: tuple[type[Fact], ...] = (SubjectForgotten,)

"""What does an agent work towards, and which knowledge was put before it for that? (mission K7, K12; source 001)

The entity id is `{owner}/{goal_id}`: goals of two agents that both call theirs `goal-1` never meet. Focusing again
states the goal anew, with what is known by then; every focus stays readable. Only the owner states these.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from kledger.contract.scopes import Entity
from ledger.event import Fact
from ledger.events.bounds import Description, NewId
from ledger.events.knowledge import Id
from ledger.events.recall import Served


def goal_entity_id(owner: str, goal_id: str) -> str:
    """The entity id of one goal of one owner."""
    return f"{owner}/{goal_id}"


class GoalFocused(Fact):
    """The goal is worked on from now; `items` were injected, best first, by the recall that `recall` names."""

    name: ClassVar[str] = "goal.focused"

    goal_id: NewId
    owner: Entity
    description: Description
    items: Served = Field(default_factory=list)
    recall: Id | None = None

    def stated_id(self) -> str:
        """The entity id as the data states it; the subject must say the same."""
        return goal_entity_id(self.owner, self.goal_id)


FACTS: tuple[type[Fact], ...] = (GoalFocused,)

"""Events of an agent's goals, with the knowledge that was injected for each.

The entity id is `{owner}/{goal_id}`, so goals of two agents with the same id do not collide. Focusing again publishes
the goal again, with the knowledge at that time; every focus stays readable. Only the owner publishes these.
"""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from kledger.contract.bounds import Description, NewId
from kledger.contract.knowledge import Id
from kledger.contract.scope_fields import SeenEntity
from ledger.event import Example, Fact
from ledger.events.examples import ITEM, RECALL, TASK, USER
from ledger.events.recall import Served, ServedItem


def goal_entity_id(owner: str, goal_id: str) -> str:
    """The entity id of one goal of one owner."""
    return f"{owner}/{goal_id}"


class GoalFocused(Fact):
    """The goal is worked on from now; `items` were injected, best first, by the recall that `recall` names."""

    name: ClassVar[str] = "goal.focused"
    personal: ClassVar[tuple[str, ...]] = ("description",)
    example: ClassVar[Example] = Example(
        goal_entity_id(USER, "goal-123"),
        USER,
        goal_id="goal-123",
        owner=USER,
        description=TASK,
        items=[ServedItem(id=ITEM, version=2, relevance=0.83)],
        recall=RECALL,
    )

    goal_id: NewId
    owner: SeenEntity
    description: Description
    items: Served = Field(default_factory=list)
    recall: Id | None = None

    def stated_id(self) -> str:
        """The entity id in the data, which the subject has to match."""
        return goal_entity_id(self.owner, self.goal_id)


FACTS: tuple[type[Fact], ...] = (GoalFocused,)

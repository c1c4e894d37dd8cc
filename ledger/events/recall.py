"""Events of recalls: which items were served, to whom, for which trace, from which state of the views.

Credit, promotion and "why did the agent believe this" are computed from these, but for those of the kind `page`. The
entity id is the recall's id.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from kledger.contract.bounds import MAX_ID, MOST_LISTED, Number, Query
from kledger.contract.json_text import MOST_POSITION
from kledger.contract.language import Language
from kledger.contract.part import Part
from kledger.contract.recall import LOOK, Intent, Match
from kledger.contract.scope_fields import Scope
from kledger.contract.words import RecallKind
from ledger.event import Example, Fact
from ledger.events.examples import ITEM, RECALL, USER

MAX_POLICY = 64


class ServedItem(Part):
    """One item served: its version then, and the relevance that ranked it."""

    id: Annotated[str, Field(min_length=1, max_length=MAX_ID)]
    version: Annotated[int, Field(ge=1, le=MOST_POSITION)]
    relevance: Number


class Ranking(Part):
    """How the items of a recall were ranked: `policy` names the settings, `matches` has the match of each item in turn.

    From the policy and the position of the views every factor can be computed again. A match is null where nothing was
    asked. `intent` is what the message asked for, `session` the one that the recall was made in.
    """

    policy: Annotated[str, Field(min_length=1, max_length=MAX_POLICY)]
    matches: Annotated[list[Match | None], Field(max_length=MOST_LISTED)] = Field(default_factory=list)
    session: Annotated[str, Field(max_length=MAX_ID)] | None = None
    language: Language | None = None
    intent: Intent | None = None


Served = Annotated[list[ServedItem], Field(max_length=MOST_LISTED)]


class RecallServed(Fact):
    """Items were handed out, best first. `view_position` is the log position that the answer knew."""

    name: ClassVar[str] = "recall.served"
    version: ClassVar[int] = 2
    added: ClassVar[tuple[str, ...]] = ("ranking",)
    personal: ClassVar[tuple[str, ...]] = ("query",)
    example: ClassVar[Example] = Example(
        RECALL,
        USER,
        query="怎么跑测试",
        visible_scopes=[USER, "project:ledger", "public"],
        items=[ServedItem(id=ITEM, version=2, relevance=0.83)],
        view_position=6,
        ranking=Ranking(policy="4f1c2a9d0b7e", matches=[0.71], language="zh", intent="new_task"),
    )

    kind: RecallKind = "search"
    query: Query
    visible_scopes: Annotated[list[Scope], Field(max_length=MOST_LISTED)]
    items: Served
    view_position: Annotated[int, Field(ge=0, le=MOST_POSITION)]
    ranking: Annotated[Ranking | None, Field(exclude_if=lambda value: value is None)] = None

    def counted_items(self) -> list[str]:
        """The ids of what it served; none where it does not count."""
        return [] if self.kind == LOOK else [item.id for item in self.items]


FACTS: tuple[type[Fact], ...] = (RecallServed,)

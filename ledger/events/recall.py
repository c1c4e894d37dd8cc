"""Events of recalls: which items were served, to whom, for which trace, from which state of the views.

Credit, promotion and "why did the agent believe this" are computed from these. The entity id is the recall's id.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kledger.contract.bounds import MAX_ID, MOST_LISTED, MOST_POSITION, Number, Query
from kledger.contract.part import Part
from kledger.contract.scopes import Scope
from ledger.event import Example, Fact
from ledger.events.examples import ITEM, RECALL, USER


class ServedItem(Part):
    """One item served: its version then, and the relevance that ranked it."""

    id: Annotated[str, Field(min_length=1, max_length=MAX_ID)]
    version: Annotated[int, Field(ge=1, le=MOST_POSITION)]
    relevance: Number


Served = Annotated[list[ServedItem], Field(max_length=MOST_LISTED)]


class RecallServed(Fact):
    """Items were handed out, best first. `view_position` is the log position that the answer knew."""

    name: ClassVar[str] = "recall.served"
    personal: ClassVar[tuple[str, ...]] = ("query",)
    example: ClassVar[Example] = Example(
        RECALL,
        USER,
        query="怎么跑测试",
        visible_scopes=[USER, "project:ledger", "public"],
        items=[ServedItem(id=ITEM, version=2, relevance=0.83)],
        view_position=6,
    )

    kind: Literal["search", "startup", "focus"] = "search"
    query: Query
    visible_scopes: Annotated[list[Scope], Field(max_length=MOST_LISTED)]
    items: Served
    view_position: Annotated[int, Field(ge=0, le=MOST_POSITION)]


FACTS: tuple[type[Fact], ...] = (RecallServed,)

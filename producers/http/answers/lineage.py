"""What does HTTP answer with when it is asked for lineage?"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from producers.http.answers.knowledge import ReadAnswer
from projections.views.lineage.roles import Role


class LineageAnswer(ReadAnswer):
    """`events` has each event around `ref` once, with its role; `edges` has the links that they state."""

    class Event(BaseModel):
        role: Role
        event_id: str
        event_type: str
        entity: str
        entity_id: str
        actor: str
        trace_id: str | None
        message_id: str | None
        position: int
        time: str
        verdict: Literal["helpful", "harmful", "confirmed"] | None = None
        case: dict[str, str] | None = None
        score: int | None = None

    class Edge(BaseModel):
        direction: Literal["from", "to"]
        relation: str
        ref: str
        event_id: str
        event_type: str
        entity: str
        entity_id: str
        position: int
        time: str
        stated_in: list[Literal["envelope", "origin", "source", "case"]] | None = None

    ref: str
    events: list[Event]
    edges: list[Edge]
    position: int

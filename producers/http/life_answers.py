"""What does HTTP answer about an item's life? Why somebody reads it, what became of it, and where it is from."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from ledger.event import JsonObject
from ledger.scopes import Visibility
from producers.http.answers import ReadAnswer


class WhyAnswer(ReadAnswer):
    class Because(BaseModel):
        class Since(BaseModel):
            position: int
            version: int
            change: str
            event_id: str
            by: str
            time: str

        kind: Literal["scope", "acl", "owner", "operator"]
        entity: str | None
        permission: Literal["read", "read_write"] | None = None
        since: Since

    class MayChange(BaseModel):
        owner: str
        writers: list[str]
        you: Literal["owner", "writer", "operator"] | None

    id: str
    visibility: Visibility
    because: list[Because]
    recalled: bool
    also: list[str]
    may_change: MayChange
    position: int


class HistoryAnswer(ReadAnswer):
    id: str
    versions: list[JsonObject]
    feedback: list[JsonObject]
    position: int


class LineageAnswer(ReadAnswer):
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
    edges: list[Edge]
    position: int

"""What does HTTP answer about an item's life? Why somebody reads it, and what became of it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from kledger.contract.scopes import Visibility
from ledger.event import JsonObject
from producers.http.answers.knowledge import ReadAnswer


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

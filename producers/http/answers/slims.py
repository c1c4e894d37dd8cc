"""What does HTTP tell of slims? The shapes of the answers, for the OpenAPI document."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from ledger.event import JsonObject
from producers.http.answers.knowledge import ReadAnswer


class SlimSummary(BaseModel):
    id: str
    status: Literal["requested", "reported", "approved", "applied", "withdrawn", "reverted", "rejected", "failed"]
    owner: str
    requested_at: str
    updated_at: str
    position: int
    scopes: list[str] | None
    model: str | None
    threshold: float
    dry_run: bool
    candidates: int | None
    seconds: float | None
    items_before: int | None
    reason: str | None
    code: str | None


class SlimAnswer(SlimSummary):
    class Group(BaseModel):
        class Similar(BaseModel):
            id: str
            similarity: float

        group: int
        survivor: str
        merged: list[Similar]
        types: list[str] | None
        task: str | None
        content: str | None
        tags: JsonObject | None
        usage: JsonObject | None
        skipped: str | None

    groups: list[Group]
    merged: int
    items_after: int | None
    usage: JsonObject | None
    note: str | None
    done: bool


class ShownSlimAnswer(SlimAnswer, ReadAnswer):
    """The same where it is read."""


class SlimsAnswer(ReadAnswer):
    results: list[SlimSummary]
    count: int
    total: int
    position: int

"""What does HTTP answer of models' work? Shapes of evolutions, extractions, conflicts, reverts (mission K4, K6)."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from ledger.event import JsonObject
from producers.http.answers.knowledge import ReadAnswer, UpdatedAnswer


class EvolutionAnswer(BaseModel):
    id: str
    status: Literal["requested", "started", "proposed", "applied", "reverted", "rejected", "failed"]
    owner: str
    requested_at: str
    updated_at: str
    position: int
    item_id: str
    base_version: int
    feedback: str
    apply: bool
    content: str | None
    task: str | None
    reason: str | None
    code: str | None
    usage: JsonObject | None


class EvolvingAnswer(UpdatedAnswer):
    evolution: EvolutionAnswer | None = None
    done: bool | None = None


class EvolutionsAnswer(ReadAnswer):
    results: list[EvolutionAnswer]
    count: int
    total: int
    position: int


class ExtractionAnswer(BaseModel):
    class Found(BaseModel):
        knowledge_id: str
        action: Literal["saved", "confirmed", "conflict"]

    id: str
    status: Literal["requested", "started", "completed", "failed"]
    owner: str
    requested_at: str
    updated_at: str
    position: int
    kind: Literal["statement", "task", "conversation", "feedback"]
    scopes: list[str]
    messages: int
    items: list[Found]
    reason: str | None
    code: str | None
    usage: JsonObject | None


class ExtractionsAnswer(ReadAnswer):
    results: list[ExtractionAnswer]
    count: int
    total: int
    position: int


class ConflictAnswer(BaseModel):
    id: str
    status: Literal["recorded", "resolved"]
    owner: str
    requested_at: str
    updated_at: str
    position: int
    first: str
    first_version: int
    second: str
    second_version: int
    reason: str
    extraction: str | None
    winner: str | None
    decision: str | None


class ConflictsAnswer(ReadAnswer):
    results: list[ConflictAnswer]
    count: int
    total: int
    position: int


class ResolvedAnswer(BaseModel):
    id: str
    status: Literal["resolved"]
    winner: str | None
    retired: str | None
    position: int


class DecidedAnswer(BaseModel):
    id: str
    status: Literal["applied", "rejected", "reverted"]
    item_id: str
    position: int
    event_id: str


class RevertedAnswer(BaseModel):
    id: str
    position: int
    event_id: str
    to_version: int
    version: int

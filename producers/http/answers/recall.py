"""What does HTTP answer of recall at a start and at a goal, and of prompts (mission K7, K12)?"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel

from ledger.event import JsonObject
from producers.http.answers.knowledge import FoundItemAnswer, ReadAnswer


class StartedAnswer(ReadAnswer):
    user_memory: JsonObject | None
    work_memory: JsonObject | None
    profile: list[FoundItemAnswer]
    results: list[FoundItemAnswer]
    count: int
    sections: dict[Literal["user_memory", "work_memory", "profile", "knowledge"], str | None]
    prompt: str
    position: int
    recall_id: str | None


class FocusedAnswer(ReadAnswer):
    class Metadata(BaseModel):
        items: list[FoundItemAnswer]

    title: str
    output: str
    metadata: Metadata
    goal_id: str
    owner: str
    description: str
    count: int
    recall_id: str | None
    event_id: str
    position: int


class GoalAnswer(ReadAnswer):
    class Injected(FoundItemAnswer):
        focused_id: str
        focused_version: int

    goal_id: str
    owner: str
    description: str
    knowledge: list[Injected]
    section: str
    left_out: int
    focuses: int
    created_at: str
    focused_at: str
    recall_id: str | None
    trace_id: str | None
    message_id: str | None
    position: int


class PromptsAnswer(BaseModel):
    class Named(BaseModel):
        name: str
        title: str
        languages: list[Literal["zh", "en"]]

    prompts: list[Named]


class PromptAnswer(BaseModel):
    name: str
    language: Literal["zh", "en"]
    title: str
    version: str
    text: str

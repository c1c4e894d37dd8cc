"""What shapes do the answers have that recall without being searched? The JSON documents of HTTP, as types."""

from __future__ import annotations

from typing import Any, TypedDict

from kledger.answers.knowledge import Answered, Hit


class Startup(Answered):
    """What an agent has to know when it starts; `sections` and `prompt` are the same as text."""

    user_memory: dict[str, Any] | None
    work_memory: dict[str, Any] | None
    profile: list[Hit]
    results: list[Hit]
    count: int
    sections: dict[str, str | None]
    prompt: str
    position: int
    recall_id: str | None


class FocusedGoal(Answered):
    """A goal that was focused; `metadata["items"]` is the knowledge injected, `output` the same as text."""

    title: str
    output: str
    metadata: dict[str, list[Hit]]
    goal_id: str
    owner: str
    description: str
    count: int
    recall_id: str | None
    event_id: str
    position: int


class InjectedItem(Hit):
    """An item on a goal: as it is now, and the id and version that were injected (it may have been merged)."""

    focused_id: str
    focused_version: int


class Goal(Answered):
    """A goal with its knowledge, and that as text (`section`)."""

    goal_id: str
    owner: str
    description: str
    knowledge: list[InjectedItem]
    section: str
    left_out: int
    focuses: int
    created_at: str
    focused_at: str
    recall_id: str | None
    trace_id: str | None
    message_id: str | None
    position: int


class PromptName(TypedDict):
    """A prompt that ships with the ledger."""

    name: str
    title: str
    languages: list[str]


class Prompt(TypedDict):
    """One prompt in one language; `version` follows from its text."""

    name: str
    language: str
    title: str
    version: str
    text: str

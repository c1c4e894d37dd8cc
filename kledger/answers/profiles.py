"""Answers about the profiles of a user: the memories `user` and `work`."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from kledger.answers.parts import Answered, JsonDocument, KeptAt, Position, Time

MemoryType = Literal["user", "work"]


class Memories(TypedDict):
    """The two memories of a user, with their defaults until something is stated; null for one that is disabled."""

    user_memory: JsonDocument | None
    work_memory: JsonDocument | None


class MemoryPrompt(TypedDict):
    """A memory as a section of a system prompt, for the agent that it is for; null for one that has nothing to say."""

    memory_type: MemoryType
    agent_type: Literal["router", "worker"]
    prompt: str | None


class MemoryVersion(TypedDict):
    """One version of a memory: it holds from `valid_from` up to `valid_to`, null while it does."""

    version: int
    change: Literal["created", "replaced", "patched", "disabled"]
    status: Literal["active", "disabled"]
    content: JsonDocument
    valid_from: int
    valid_to: int | None
    valid_from_time: Time
    valid_to_time: Time | None
    trace_id: str | None
    message_id: str | None
    event_id: str


class MemoryHistory(Answered):
    """Every version of one memory of a user, oldest first."""

    id: str
    owner: str
    memory_type: MemoryType
    versions: list[MemoryVersion]
    position: Position


class DisabledMemory(TypedDict):
    """A memory that is not used any more."""

    id: str
    owner: str
    memory_type: MemoryType
    status: Literal["disabled"]
    position: KeptAt
    event_id: str

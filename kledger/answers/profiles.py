"""Answers about the profiles of a user, `user` and `work`: what is remembered of them."""

from __future__ import annotations

from typing import Literal, NotRequired

from typing_extensions import TypedDict

from kledger.answers.parts import Answered, Earlier, JsonDocument, KeptAt, Position, Time
from kledger.contract.words import AgentType, ProfileType


class Profiles(TypedDict):
    """Both profiles of a user, with their defaults until something is stated; null for one that is disabled."""

    user_memory: JsonDocument | None
    work_memory: JsonDocument | None


class ProfilePrompt(TypedDict):
    """A profile as a section of a system prompt, for the agent that it is for; null for one that has nothing to say."""

    memory_type: ProfileType
    agent_type: AgentType
    prompt: str | None


class ProfileVersion(TypedDict):
    """One version of a profile: it holds from `valid_from` up to `valid_to`, null while it does."""

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


class ProfileHistory(Answered):
    """Every version of one profile of a user, oldest first; the latest where all do not fit."""

    id: str
    owner: str
    memory_type: ProfileType
    versions: list[ProfileVersion]
    next: NotRequired[Earlier]
    position: Position


class DisabledProfile(TypedDict):
    """A profile that is not used any more."""

    id: str
    owner: str
    memory_type: ProfileType
    status: Literal["disabled"]
    position: KeptAt
    event_id: str

"""Request bodies about models' work and the decisions on it, field by field."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from kledger.contract.bounds import ModelName, NewId, Reason, Short
from kledger.contract.knowledge import Id, Scopes, Text, Version
from kledger.contract.sessions import ToolCalls
from kledger.contract.words import ExtractionKind
from kledger.requests.body import Asked
from kledger.requests.owners import Owner
from kledger.requests.said import in_our_form


class MessageBody(Asked):
    """One message of a conversation; without an id it gets one of the extraction. `name` is who says it, where several
    have the same role; `created_at` is when it was said, if not now, and what "tomorrow" in it goes by. A content may
    be null, or a list of parts that are words, and further fields null or empty. Knowledge is found in words:
    `tool_calls` and `tool_call_id` are read over, and so is a message without words.
    """

    id: NewId | None = None
    role: Annotated[str, Field(min_length=1, max_length=64)] = "user"
    name: Short | None = None
    content: str = ""
    created_at: Short | None = None
    tool_calls: Annotated[ToolCalls | None, Field(exclude=True)] = None
    tool_call_id: Annotated[Short | None, Field(exclude=True)] = None

    _in_our_form = model_validator(mode="before")(
        in_our_form("id", "role", "name", "created_at", "tool_calls", "tool_call_id")
    )


class ExtractRequest(Asked):
    """Find the knowledge in a text, or in messages; the owner defaults to who asks, scopes to the owner and the user,
    agent and project that ask. Of a user's profile they are the user and projects alone.
    """

    kind: ExtractionKind = "statement"
    text: Text | None = None
    messages: Annotated[list[MessageBody], Field(min_length=1, max_length=1_000)] | None = None
    scopes: Scopes | None = None
    owner: Owner | None = None
    model: ModelName | None = None

    @model_validator(mode="after")
    def _one_form(self) -> Self:
        if (self.text is None) == (self.messages is None):
            raise ValueError("states `text` or `messages`: give one of the two")
        if self.messages is not None and not any(message.content for message in self.messages):
            raise ValueError("states messages without words: give one with a content at least")
        return self


class MergeBody(Asked):
    """What the side that holds says from now on: both in one."""

    content: Text
    task: str | None = None


class ResolveRequest(Asked):
    """Which side of a conflict holds; null when both do. With `merge` it holds with what both say in one."""

    winner: Id | None = None
    reason: Reason | None = None
    merge: MergeBody | None = None

    @model_validator(mode="after")
    def _merges_into_one(self) -> Self:
        if self.merge is not None and self.winner is None:
            raise ValueError("states `merge` and no `winner`: name the side that says both from now on")
        return self


class RevertRequest(Asked):
    """Make an item again what it was at an earlier version."""

    to_version: Version
    expected_version: Version | None = None

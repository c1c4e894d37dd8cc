"""Request bodies of sessions; typos are refused."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from kledger.contract.bounds import Document, Short
from kledger.contract.sessions import (
    MOST_ENTRIES,
    MOST_MESSAGES,
    Attachments,
    Content,
    MessageId,
    Role,
    ScratchpadList,
    ScratchpadText,
    SessionId,
    StatedTokens,
    ToolCalls,
)
from kledger.requests.body import Asked
from kledger.requests.said import in_our_form


class SessionMessageBody(Asked):
    """One message. The session holds an id once, however often it is sent; with other words it is refused.

    `tool_calls` are what an assistant asks tools for, each with an `id`; a message of the role `tool` names the call
    that it answers in `tool_call_id`. `name` is who says it, where several have the same role. `tokens` is the count
    of the model's own tokenizer, where that is known.
    The form of models' APIs is taken too: a content that is null or a list of parts, whose words become the content
    and the others `attachments`, and further fields that are null or empty.
    """

    id: MessageId
    role: Role
    name: Short | None = None
    content: Content = ""
    tool_calls: ToolCalls | None = None
    tool_call_id: Short | None = None
    attachments: Attachments | None = None
    tokens: StatedTokens | None = None
    created_at: Short | None = None

    _in_our_form = model_validator(mode="before")(
        in_our_form("id", "role", "name", "tool_calls", "tool_call_id", "attachments", "tokens", "created_at")
    )

    @model_validator(mode="after")
    def _of_its_role(self) -> Self:
        if self.tool_calls and self.role != "assistant":
            raise ValueError(f"has tool_calls, which an assistant makes, and is by the role {self.role}")
        if self.tool_call_id is not None and self.role != "tool":
            raise ValueError(f"has a tool_call_id, which a tool's result has, and is by the role {self.role}")
        return self


def _each_once(messages: list[SessionMessageBody]) -> list[SessionMessageBody]:
    if len({message.id for message in messages}) < len(messages):
        raise ValueError("names a message twice: state each once")
    return messages


class AppendRequest(Asked):
    """Messages to append to a session, in order; it opens with its first one."""

    messages: Annotated[
        list[SessionMessageBody], Field(min_length=1, max_length=MOST_MESSAGES), AfterValidator(_each_once)
    ]


class Decided(Asked):
    """What was decided, and why."""

    what: ScratchpadText
    why: ScratchpadText = ""


class Scratchpad(Asked):
    """Where an agent stands in its work: goal, steps, decisions, what it waits for."""

    current_goal: ScratchpadText | None = None
    sub_goals: ScratchpadList | None = None
    completed: ScratchpadList | None = None
    current_step: ScratchpadText | None = None
    decisions: Annotated[list[Decided], Field(max_length=MOST_ENTRIES)] | None = None
    blockers: ScratchpadList | None = None


class ScratchpadRequest(Asked):
    """A merge patch (RFC 7396) of a session's scratchpad: null removes, a list is replaced whole.

    `session_id` may be there, as the answer has it, and is then the session's.
    """

    session_id: SessionId | None = None
    scratchpad: Document | None

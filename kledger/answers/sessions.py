"""Answers about sessions: their messages, and what is known of each."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from kledger.answers.parts import Answered, Count, JsonDocument, KeptAt, Position, Time, Total
from kledger.contract.sessions import Role
from kledger.contract.words import ItemStatus, SessionEnd, SessionStatus


class AppendedMessages(TypedDict):
    """What became of messages; `count` is how many the session has now."""

    session_id: str
    appended: Annotated[int, Field(description="Messages that are new in the session")]
    duplicates: Annotated[int, Field(description="Messages that the session had already, in the same words")]
    count: Annotated[int, Field(description="Messages of the session by now")]
    position: Annotated[int, Field(description="The log position at which the session was opened")]


class SessionMessage(TypedDict):
    """One message as it was sent; `number` counts from 1 in the session. What was not sent is not there."""

    id: str
    number: int
    role: Role
    name: NotRequired[str]
    content: str
    tool_calls: NotRequired[list[JsonDocument]]
    tool_call_id: NotRequired[str]
    attachments: NotRequired[list[JsonDocument]]
    tokens: NotRequired[int]
    created_at: NotRequired[str]


class MessageList(TypedDict):
    """One page of a session's messages, in order; `next` is where the next page begins, null at the end."""

    session_id: str
    messages: list[SessionMessage]
    count: Count
    total: Annotated[int, Field(description="Messages of the session")]
    next: Annotated[str | None, Field(description="The `after` of the next page")]


class Expanded(TypedDict):
    """The words behind an id: the message itself, or the messages that a summary stands for."""

    session_id: str
    id: str
    messages: list[SessionMessage]
    after: NotRequired[
        Annotated[str, Field(description="The last of those that fit: messages go on after it; absent else")]
    ]


class ContextMessage(TypedDict):
    """One message as it is to be sent to a model; `tokens` is what it costs, `shortened` by what it was shortened."""

    id: str
    number: int
    role: Role
    name: NotRequired[str]
    content: str
    tool_calls: NotRequired[list[JsonDocument]]
    tool_call_id: NotRequired[str]
    attachments: NotRequired[list[JsonDocument]]
    created_at: NotRequired[str]
    tokens: int
    shortened: NotRequired[Literal["level 1", "budget"]]


class SessionSummary(TypedDict):
    """What stands for the messages `first` to `last`, by their numbers; `expand` gives those back."""

    id: str
    first: int
    last: int
    content: str


class SessionOverview(SessionSummary):
    """What stands for everything up to `last`."""

    decisions: list[str]
    todos: list[str]
    agreements: list[str]


class SessionSummaries(TypedDict):
    """What was summed up of a session by now: segments in their order, and all of it."""

    session_id: str
    summaries: list[SessionSummary]
    more: NotRequired[Annotated[Literal[True], Field(description="These are the latest segments that fit")]]
    overview: SessionOverview | None


class LeftOut(TypedDict):
    """So many messages, between two numbers, that are not in a context; `by` says why."""

    by: Literal["window", "level 1", "level 2", "level 3", "budget", "call", "erased"]
    messages: int
    first: int
    last: int


class PendingLevel(TypedDict):
    """The level that a conversation asks for, and why it is not applied, or not to all that is older."""

    level: int
    reason: str


class SessionContext(TypedDict):
    """What of a session fits a model's window: `used` tokens of `budget`, as `counter` counts them."""

    session_id: str
    budget: Annotated[int, Field(description="Tokens that it may take: a share of the window, 70 % by default")]
    used: int
    counter: Annotated[str, Field(description="What counted: a vocabulary, or the estimate of one")]
    level: Annotated[int, Field(description="0 to 3: how far the conversation was made smaller")]
    messages: list[ContextMessage]
    summaries: Annotated[list[SessionSummary], Field(description="Of segments that are not among the messages")]
    overview: SessionOverview | None
    left_out: list[LeftOut]
    pending: PendingLevel | None


class ScratchpadDecision(TypedDict):
    """What was decided, and why."""

    what: str
    why: str


class ScratchpadFields(TypedDict):
    """Where an agent stands in its work; what was not stated is not there."""

    current_goal: NotRequired[str]
    sub_goals: NotRequired[list[str]]
    completed: NotRequired[list[str]]
    current_step: NotRequired[str]
    decisions: NotRequired[list[ScratchpadDecision]]
    blockers: NotRequired[list[str]]


class SessionScratchpad(TypedDict):
    """The scratchpad of a session; empty before anything is stated, and after so many idle minutes."""

    session_id: str
    scratchpad: ScratchpadFields


class ListedSession(TypedDict):
    """One session; `messages` and `last_at` are null once its words are gone."""

    session_id: str
    owner: str
    status: SessionStatus
    messages: int | None
    opened_at: Time
    last_at: Annotated[str | None, Field(description="When its last message came, RFC 3339 in UTC")]
    closed_at: Annotated[str | None, Field(description="RFC 3339, in UTC")]
    closed_by: Annotated[SessionEnd | None, Field(description="Why it was closed last")]
    summaries: Annotated[int, Field(description="How often a part of it was summed up")]
    position: KeptAt


class SessionList(Answered):
    """One page of the caller's sessions, the one that was opened or closed last first; the operator's are all."""

    results: list[ListedSession]
    count: Count
    total: Total
    position: Position


class SaidMessage(TypedDict):
    """A message, and the session in which it was said."""

    session_id: str
    owner: str
    message: SessionMessage


class SaidMessages(TypedDict):
    """The messages of one id: in each session of the caller's that has one, ten at most."""

    id: str
    results: list[SaidMessage]


class SavedInSession(TypedDict):
    """An item that came of a session; `message_id` is null where its save names none of the messages."""

    id: str
    task: str
    status: ItemStatus
    owner: str
    message_id: str | None
    position: KeptAt
    time: Time


class SessionKnowledge(Answered):
    """The items that came of a session, in the order in which they were saved; `more` where there are others."""

    session_id: str
    results: list[SavedInSession]
    count: Count
    more: bool
    position: Position


class SessionMoved(TypedDict):
    """A session that was closed or deleted."""

    session_id: str
    status: SessionStatus
    position: KeptAt

"""Answers about memories: one by the fields of its layer, and pages of them."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from kledger.answers.knowledge import SavedItem, Shown
from kledger.answers.parts import Answered, Count, JsonDocument, KeptAt, Position, Time, Total, Unmatching
from kledger.contract.scopes import Visibility
from kledger.contract.words import HeldStatus, ItemStatus, MemoryLayer


class EpisodeContext(TypedDict):
    """In which session an episode happened, with whom, how it ended, and what came of it."""

    session_id: str | None
    participants: list[str]
    outcome: str | None
    artifacts: list[str]


class Memory(Shown):
    """A memory, with the fields of its layer; `type` is its layer too.

    `evidence_count` is 1 for its save and 1 for each confirmation and credited helpful case, `usage_count` and
    `success_rate` follow from the verdicts on it (null where there is none). `tags` are words or an object, as they
    were stated last.
    """

    id: str
    layer: MemoryLayer
    type: MemoryLayer
    kind: str | None
    task: str
    content: str
    types: list[str]
    tags: list[str] | JsonDocument
    importance: float | None
    confidence: float
    evidence_count: int
    first_observed: Time
    last_confirmed: Time | None
    last_updated: Time
    success_rate: float | None
    usage_count: int
    related_memories: list[str]
    session_id: str | None
    scopes: list[str]
    owner: str
    visibility: Visibility
    status: ItemStatus
    version: int
    position: Annotated[int, Field(description="The log position of the last event about it")]
    created_at: Time
    updated_at: Time
    merged_into: NotRequired[str]
    reason: NotRequired[Annotated[str | None, Field(description="Of one memory that was rejected: why")]]
    lifetime: NotRequired[int]
    expires_at: NotRequired[Time]
    category: NotRequired[str | None]
    event: NotRequired[str]
    context: NotRequired[EpisodeContext]
    timestamp: NotRequired[str | None]
    name: NotRequired[str | None]
    trigger: NotRequired[str | None]
    steps: NotRequired[list[str]]


class OneMemory(Memory, Answered):
    """One memory that was asked for."""


class MemoryList(Answered):
    """A page of memories, by when they happened, the latest first; `next` is the offset of the next page."""

    results: list[Memory]
    count: Count
    total: Total
    next: int | None
    unmatched: NotRequired[Unmatching]
    position: Position


class Remembered(SavedItem):
    """A memory that was saved; `ignored` are the fields that were stated and not kept, as they follow from events.

    `hints` are sentences about what was kept as stated and may be meant otherwise.
    """

    layer: MemoryLayer
    ignored: list[str]
    hints: list[str]


class Confirmed(TypedDict):
    """A memory that was confirmed, and the layer that it has since; `promoted` says whether that changed it."""

    id: str
    layer: MemoryLayer
    promoted: bool
    position: KeptAt
    event_id: str


class DecidedProposal(TypedDict):
    """A proposal that a coordinator approved or rejected.

    Where it is a later version of another item, that one is `superseded`, or the two are in `conflict` (its id): the
    later one is less sure by 0.2 or more, or the coordinator may not change the other.
    """

    id: str
    status: ItemStatus
    superseded: str | None
    conflict: str | None
    position: KeptAt
    event_id: str


class HeldStatement(TypedDict):
    """What an import, an extraction or a document said again although a person had retired or corrected it.

    `knowledge_id` is the item that it becomes when it is released. `item_id` said it before: `retired_by` `retired` or
    `corrected` it (`cause`) at `retired_at`, with the `reason`; these are null where you do not read that item. The
    words and `knowledge_id` are null once they were erased with a person.
    """

    id: str
    status: HeldStatus
    owner: str
    scopes: list[str]
    types: list[str] | None
    task: str | None
    content: str | None
    tags: JsonDocument | None
    knowledge_id: str | None
    item_id: str
    cause: Literal["retired", "corrected"] | None
    reason: str | None
    retired_by: str | None
    retired_at: Time | None
    held_at: Time
    decided_by: str | None
    decision: str | None
    updated_at: Time
    position: Annotated[int, Field(description="The log position of the last event about it")]


class HeldList(Answered):
    """A page of the held statements that the caller may decide on, the latest first; `next` is the next offset."""

    results: list[HeldStatement]
    count: Count
    total: Total
    next: int | None
    position: Position


class DecidedHeld(TypedDict):
    """What was decided on a held statement; `knowledge_id` is the item that a release saved."""

    id: str
    status: Literal["released", "dropped"]
    knowledge_id: str | None
    position: KeptAt
    event_id: str


class MemoriesByLayer(TypedDict):
    """How many memories of each layer are in recall."""

    short: int
    semantic: int
    episodic: int
    procedural: int


class HealthLists(TypedDict):
    """Where the memories are listed that a number counts."""

    total: str
    expired: str
    proposed: str
    conflicting: str
    promoted: str
    never_recalled: str


class MemoryHealth(Answered):
    """How the memories are that the caller sees. `total` and what follows it are in recall; `expired` are over and not
    cleaned, `proposed` wait for a coordinator, `conflicting` are a side of an unresolved conflict, `promoted` were
    short once. `mean_confidence` is null where there is none.
    """

    total: int
    by_layer: MemoriesByLayer
    mean_confidence: float | None
    expired: int
    proposed: int
    conflicting: int
    promoted: int
    never_recalled: int
    lists: HealthLists
    position: Position


class Cleaned(TypedDict):
    """The expired memories that were retired, or with `dry_run` would be; `more`: there are others, ask again."""

    dry_run: bool
    ids: list[str]
    count: int
    more: bool
    position: Position

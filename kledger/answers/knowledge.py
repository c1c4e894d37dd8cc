"""Answers about knowledge: items as lists, searches and `get` give them, and what became of a change.

Each shape is written here once: it types the client, and it is the response model of the OpenAPI document.
"""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from kledger.answers.documents import ItemPart
from kledger.answers.explained import SearchExplained
from kledger.answers.models import Evolution
from kledger.answers.parts import (
    Answered,
    Count,
    Earlier,
    Fault,
    JsonDocument,
    KeptAt,
    Position,
    Saved,
    Searched,
    Shortened,
    Time,
    Total,
    Unmatching,
    Warned,
)
from kledger.contract.scopes import Visibility
from kledger.contract.words import ImportOutcome, ItemStatus, MemoryLayer, Permission

Verdict = Literal["helpful", "harmful", "confirmed"]


class AclEntry(TypedDict):
    """Somebody who may read an item beside those in its scopes, and with `read_write` revise it."""

    entity: str
    permission: Permission


class ItemSource(TypedDict):
    """Where the knowledge is from, as its author says: each field is there where the author filled it in."""

    name: NotRequired[str]
    category: NotRequired[str]
    urls: NotRequired[list[str]]
    agent_id: NotRequired[str]
    submitted_by: NotRequired[str]
    timestamp: NotRequired[str]
    trace_id: NotRequired[str]
    message_id: NotRequired[str]


class WholeSource(TypedDict):
    """Where the knowledge is from, with every field; what nobody filled in is null or empty."""

    name: str | None
    category: str | None
    urls: list[str]
    agent_id: str | None
    submitted_by: str | None
    timestamp: str | None
    trace_id: str | None
    message_id: str | None


class ItemOrigin(TypedDict):
    """What the save of an item states of the whole item; the dates are of where it was before."""

    trace_id: str | None
    message_id: str | None
    created_at: str | None
    updated_at: str | None


class HistoryCase(TypedDict):
    """One use of an item in which it helped or harmed.

    `timestamp` is the case's own, `time` the moment the log kept it; `credit` says whether the item was served to the
    trace that the case names.
    """

    task: str | None
    query: str | None
    outcome: str | None
    reason: str | None
    timestamp: str | None
    actor: str
    trace_id: str | None
    message_id: str | None
    credit: Literal["served", "not_served", "untraced"]
    event_id: str
    position: int
    time: Time


class JudgedCase(HistoryCase):
    """One use of an item, with the verdict on it."""

    verdict: Verdict


class Eval(TypedDict):
    """How an item did: its score of 1 to 5, its cases counted, and how sure it is (0 to 1)."""

    score: int
    helpful: int
    harmful: int
    confidence: float


class WholeEval(Eval):
    """How an item did, with the cases that count, oldest first."""

    helpful_history: list[HistoryCase]
    harmful_history: list[HistoryCase]
    more: NotRequired[
        Annotated[Literal[True], Field(description="These are the latest cases: the item's history has earlier ones")]
    ]


class ItemMemory(TypedDict):
    """What makes an item a memory: its layer, and each field of that layer that is filled in."""

    layer: MemoryLayer
    kind: NotRequired[str]
    importance: NotRequired[float]
    lifetime: NotRequired[int]
    category: NotRequired[str]
    related: NotRequired[list[str]]
    tags: NotRequired[list[str]]
    session: NotRequired[str]
    event: NotRequired[str]
    participants: NotRequired[list[str]]
    outcome: NotRequired[str]
    artifacts: NotRequired[list[str]]
    happened_at: NotRequired[str]
    name: NotRequired[str]
    trigger: NotRequired[str]
    steps: NotRequired[list[str]]


class Shown(TypedDict):
    """What every answer about an item, a version of it or a memory has where there is some.

    `supersedes` is the item of which it is a later version; `superseded_by`, where it is superseded, the one in force.
    """

    acl: NotRequired[list[AclEntry]]
    supersedes: NotRequired[str]
    superseded_by: NotRequired[str]


class ItemFields(Shown):
    """What every answer that has an item says of it; `memory` is there where it is one."""

    id: str
    task: str
    content: str
    types: list[str]
    tags: JsonDocument
    scopes: list[str]
    owner: str
    visibility: Visibility
    resource_ids: list[str]
    quality_score: float
    version: int
    position: Annotated[int, Field(description="The log position of the last event about it")]
    created_at: Time
    updated_at: Time
    memory: NotRequired[ItemMemory]


class SavedItem(Saved):
    """A new item, acknowledged; one that is `proposed` waits for a coordinator of the project that is to share it."""

    status: ItemStatus


class Item(ItemFields):
    """An item as lists and searches give it: `message_id` and the fields of `source` are there where it has them."""

    message_id: NotRequired[str]
    source: ItemSource
    eval: Eval


class ListedItem(Item):
    """An item of a list; one that is merged names the item that took its place."""

    status: ItemStatus
    merged_into: NotRequired[str]


class Hit(Item):
    """An item that a search found; `why` where its scope alone puts it before a far more relevant one.

    `match` is the share of the query that it covers, 0 to 1, with the same meaning in every query; it is absent where
    nothing was asked. `beside` is the item that it stands next to in its trace, where that lent it relevance.
    `also` are the items left out of a start or a focus as they say the same. `later` is the result before it that was
    said after it about the same.
    """

    relevance: float
    match: NotRequired[float]
    beside: NotRequired[str]
    also: NotRequired[list[str]]
    later: NotRequired[str]
    why: NotRequired[str]
    shortened: NotRequired[Shortened]


class Referred(TypedDict):
    """A resource that an item names, and whether the caller may read it."""

    id: str
    readable: bool


class WholeItem(ItemFields, Answered):
    """One item with every field: what nobody filled in is null or empty.

    `origin` is what its save states of the whole item; its dates are of where it was before. `part` is where a chunk
    of a document stands.
    """

    message_id: str | None
    source: WholeSource
    origin: ItemOrigin | None
    eval: WholeEval
    status: ItemStatus
    merged_into: NotRequired[str]
    resources: list[Referred]
    part: NotRequired[ItemPart]


class FoundItems(Answered):
    """What was found, best first; `recall_id` names the event that says so, null when none was kept.

    `routed` says whether a model chose first, where one was asked to, and `reason` why it did not.
    """

    results: list[Hit]
    count: int
    position: Position
    recall_id: str | None
    unmatched: NotRequired[Unmatching]
    routed: NotRequired[bool]
    reason: NotRequired[str | None]


class SearchResults(FoundItems):
    """What a search found; `explained` is there where it was asked for."""

    explained: NotRequired[SearchExplained]
    searched: NotRequired[Searched]


class ItemList(Answered):
    """A page of items: `next` is where the next page begins, null on the last one (see `iterate`)."""

    results: list[ListedItem]
    count: Count
    total: Total
    next: int | None
    unmatched: NotRequired[Unmatching]
    position: Position


class HeldFor(TypedDict):
    """Where a statement is held that a person had retired or corrected, and the item that said it."""

    id: str
    item_id: str


class SavedOne(TypedDict):
    """What became of one item of a batch; `error` says why it was refused, `held` where it waits for a decision.

    `status` is there where it is a proposal, which a coordinator of its project decides on.
    """

    index: int
    id: str | None
    outcome: ImportOutcome
    position: int | None
    error: Fault | None
    warnings: list[Warned]
    held: NotRequired[HeldFor]
    status: NotRequired[ItemStatus]


class SavedMany(TypedDict):
    """What became of a batch; `results` in the order of the items. `held`: a person had retired or corrected them."""

    results: list[SavedOne]
    saved: int
    unchanged: int
    refused: int
    held: int
    position: int


class KeptEvent(TypedDict):
    """One event of a change."""

    type: str
    event_id: str
    position: int


class KeptField(TypedDict):
    """What became of one field of a change: its `position` where it was `kept`, else the `error`."""

    kept: bool
    position: NotRequired[int]
    error: NotRequired[Fault]


class ChangeFields(TypedDict):
    """What every change of an item answers: an event for each part of it, and what became of each field."""

    id: str
    position: KeptAt
    events: list[KeptEvent]
    fields: dict[str, KeptField]
    warnings: list[Warned]


class Changed(ChangeFields):
    """An item that was revised, rated or scored: one event for each part of the change.

    Where a model is asked to rewrite the item, `evolution` says what came of it, and `done` that nothing more happens
    by itself. `status` is that of what a project shares: revised, it may wait for approval again.
    """

    evolution: NotRequired[Evolution]
    done: NotRequired[bool]
    status: NotRequired[ItemStatus]


class Evolving(ChangeFields):
    """The answer of a change that asks a model; `done` when nothing more happens by itself."""

    evolution: Evolution
    done: bool


class RefusedVerdict(TypedDict):
    """One verdict of many that was not kept."""

    index: int
    knowledge_id: str | None
    error: Fault


class RatedMany(TypedDict):
    """What became of many verdicts; `refused` names each that was not kept, with its reason."""

    updated: int
    refused: list[RefusedVerdict]
    position: int


ItemChange = Literal[
    "saved",
    "revised",
    "scored",
    "retired",
    "restored",
    "shared",
    "evolved",
    "reverted",
    "absorbed",
    "merged",
    "unmerged",
    "promoted",
    "expired",
    "approved",
    "rejected",
    "superseded",
]
"""What made a version of an item."""


class ItemVersion(Shown):
    """One version of an item: what it said from `valid_from` up to `valid_to`, null while it holds.

    `reason` is why it was made, where somebody said so; `length` the characters of a content that was shortened.
    """

    version: int
    change: ItemChange
    types: list[str]
    task: str
    content: str
    tags: JsonDocument
    scopes: list[str]
    owner: str
    visibility: Visibility
    resource_ids: list[str]
    source: ItemSource
    score: int
    status: ItemStatus
    valid_from: int
    valid_to: int | None
    valid_from_time: Time
    valid_to_time: Time | None
    actor: str
    trace_id: str | None
    message_id: str | None
    event_id: str
    reason: NotRequired[str]
    length: NotRequired[int]
    memory: NotRequired[ItemMemory]


class History(Answered):
    """The versions of an item and the verdicts on it, oldest first; with a limit the latest so many of each."""

    id: str
    versions: list[ItemVersion]
    feedback: list[JudgedCase]
    next: NotRequired[Earlier]
    position: Position


class ToolMetadata(TypedDict):
    """What a tool puts beside its text: the items of its answer, once more."""

    items: list[Hit] | list[ListedItem]


class ToolSearchResults(FoundItems):
    """What the tool `knowledge_search` answers to a program."""

    metadata: ToolMetadata


class ToolItemList(ItemList):
    """What the tool `knowledge_list` answers to a program."""

    metadata: ToolMetadata

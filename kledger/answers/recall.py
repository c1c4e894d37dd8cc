"""Answers about what is recalled at an agent's start and on a goal's focus, and about the prompts."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from kledger.answers.knowledge import Eval, Hit, ItemMemory, ItemSource, Shown
from kledger.answers.parts import (
    Answered,
    Count,
    JsonDocument,
    KeptAt,
    NextOffset,
    Position,
    Searched,
    Shortened,
    Time,
    Total,
)
from kledger.contract.language import Language
from kledger.contract.recall import Intent
from kledger.contract.scopes import Visibility
from kledger.contract.words import RecallLayer


class StartupSections(TypedDict):
    """The parts of a start as text; null where there is nothing to say."""

    user_memory: str | None
    work_memory: str | None
    profile: str | None
    knowledge: str | None


class Startup(Answered):
    """What an agent has to know when it starts; `sections` and `prompt` are the same as text."""

    user_memory: JsonDocument | None
    work_memory: JsonDocument | None
    profile: list[Hit]
    results: list[Hit]
    count: int
    sections: StartupSections
    prompt: str
    position: Position
    recall_id: str | None
    searched: NotRequired[Searched]


class RecallWhy(TypedDict):
    """The factors that ranked a result: `score` is the relevance, moved by each of the others within its bounds."""

    relevance: Annotated[float, Field(description="Of the words and the meaning; compares within one answer")]
    recency: Annotated[float, Field(description="1 for what changed just now, halved every 30 days")]
    layer: Annotated[float, Field(description="Procedural before semantic before episodic: 0 to 1")]
    intent: Annotated[float, Field(description="1 where the layer answers the intent, 0.5 where it is read as well")]
    confidence: Annotated[float, Field(description="-1 to 1")]
    use: Annotated[float, Field(description="Verdicts and score: -1 to 1")]
    whose: NotRequired[Annotated[float, Field(description="-1 for what another person prefers whom nobody asks about")]]
    score: float
    rerank: NotRequired[Annotated[float, Field(description="The factor of a reranker: 0.85 to 1.15")]]


class PartChunk(TypedDict):
    """A chunk beside one that answers."""

    id: str
    content: str


class RecalledPart(TypedDict):
    """Where a chunk stands: its document, the headings above it, and the chunks before and after it."""

    document: str
    title: str
    headings: list[str]
    before: list[PartChunk]
    after: list[PartChunk]


class RecalledItem(Shown):
    """What answers a message: an item, or of the layer `working` an older message of the session (`role`, `number`).

    `match` is 0 to 1, `why` has the factors that ranked it. `part` is there for a chunk of a document; `beside` names
    the item next to it in its trace that lent it relevance; `also` are the items that say the same and were left out;
    `later` is the result before it that was said after it about the same; `asked_as` is how a model put the message to
    find it.
    """

    id: str
    layer: RecallLayer
    task: str
    content: str
    updated_at: Time
    match: float
    relevance: float
    why: RecallWhy
    beside: NotRequired[str]
    also: NotRequired[list[str]]
    later: NotRequired[str]
    part: NotRequired[RecalledPart]
    asked_as: NotRequired[str]
    types: NotRequired[list[str]]
    tags: NotRequired[JsonDocument]
    scopes: NotRequired[list[str]]
    owner: NotRequired[str]
    visibility: NotRequired[Visibility]
    resource_ids: NotRequired[list[str]]
    source: NotRequired[ItemSource]
    eval: NotRequired[Eval]
    memory: NotRequired[ItemMemory]
    message_id: NotRequired[str]
    quality_score: NotRequired[float]
    version: NotRequired[int]
    position: NotRequired[KeptAt]
    created_at: NotRequired[Time]
    role: NotRequired[str]
    number: NotRequired[int]
    shortened: NotRequired[Shortened]


class Recalled(Answered):
    """What is known that answers a message, best first; `text` is the same for a prompt.

    `nothing_known`: no result reaches the `floor`. `shown` of the results are in the text; `left_out`
    are those that the session's context holds.
    """

    intent: Intent
    results: list[RecalledItem]
    count: int
    text: str
    shown: int
    nothing_known: bool
    floor: Annotated[float, Field(description="The least match of an answer among what the caller sees")]
    left_out: int
    position: Position
    recall_id: str | None
    searched: NotRequired[Searched]


class FocusMetadata(TypedDict):
    """The knowledge that a focus injected."""

    items: list[Hit]


class FocusedGoal(Answered):
    """A goal that was focused; `metadata["items"]` is the knowledge injected, `output` the same as text."""

    title: str
    output: str
    metadata: FocusMetadata
    goal_id: str
    owner: str
    description: str
    count: int
    recall_id: str | None
    event_id: str
    position: KeptAt


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
    left_out: Annotated[int, Field(description="Items that were injected and that the caller does not see now")]
    focuses: Annotated[int, Field(description="How often the goal was focused")]
    created_at: Time
    focused_at: Time
    recall_id: str | None
    trace_id: str | None
    message_id: str | None
    position: KeptAt


class GoalInBrief(TypedDict):
    """A goal as it was focused last; `items` is how many were put before its owner then."""

    goal_id: str
    owner: str
    description: str
    items: int
    focuses: Annotated[int, Field(description="How often the goal was focused")]
    created_at: Time
    focused_at: Time
    position: KeptAt


class GoalList(Answered):
    """One page of the caller's goals, the one that was focused last first; the operator's are all."""

    results: list[GoalInBrief]
    count: Count
    total: Total
    next: NotRequired[NextOffset]
    position: Position


class PromptName(TypedDict):
    """A prompt that ships with the ledger."""

    name: str
    title: str
    description: str
    languages: list[Language]


class PromptList(TypedDict):
    """The prompts that ship with the ledger."""

    prompts: list[PromptName]


class Prompt(TypedDict):
    """One prompt in one language; `version` follows from its text."""

    name: str
    language: Language
    title: str
    description: str
    version: str
    text: str

"""Answers about what is recalled at an agent's start and on a goal's focus, and about the prompts."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from kledger.answers.knowledge import Hit, Item
from kledger.answers.parts import Answered, JsonDocument, KeptAt, Position, Time
from kledger.contract.language import Language
from kledger.contract.recall import Intent, RecallLayer


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


class RecallWhy(TypedDict):
    """The factors that ranked a result: `score` is the relevance, moved by each of the others within its bounds."""

    relevance: Annotated[float, Field(description="Of the words and the meaning; compares within one answer")]
    recency: Annotated[float, Field(description="1 for what changed just now, halved every 30 days")]
    layer: Annotated[float, Field(description="Procedural before semantic before episodic: 0 to 1")]
    intent: Annotated[float, Field(description="1 where the layer answers the intent, 0.5 where it is read as well")]
    confidence: Annotated[float, Field(description="-1 to 1")]
    use: Annotated[float, Field(description="Verdicts and score: -1 to 1")]
    score: float


class RecalledItem(Item):
    """An item that answers: its layer, its `match` (0 to 1), and the factors that ranked it."""

    relevance: float
    match: float
    layer: RecallLayer
    why: RecallWhy
    beside: NotRequired[str]


class RecalledWords(TypedDict):
    """An older message of the session that answers a follow-up; `number` counts from 1 in the session."""

    id: str
    layer: RecallLayer
    role: str
    number: int
    task: str
    content: str
    updated_at: Time
    match: float
    relevance: float
    why: RecallWhy


class Recalled(Answered):
    """What is known that answers a message, best first; `text` is the same for a prompt.

    `nothing_known`: no result reaches the least match of an answer. `shown` of the results are in the text; `left_out`
    are those that the session's context holds.
    """

    intent: Intent
    results: list[RecalledItem | RecalledWords]
    count: int
    text: str
    shown: int
    nothing_known: bool
    left_out: int
    position: Position
    recall_id: str | None


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

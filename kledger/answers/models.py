"""Answers about models' work: evolutions, extractions, conflicts and reverts."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from kledger.answers.parts import Answered, Count, KeptAt, NextOffset, Position, Time, Total, Usage
from kledger.contract.words import (
    ConflictStatus,
    EvolutionStatus,
    ExtractionAction,
    ExtractionKind,
    ItemStatus,
    ModelWork,
)

ExtractionStatus = Literal["requested", "started", "completed", "failed"]


class ProcessFields(TypedDict):
    """What every process says of itself; `position` is that of its last event."""

    id: str
    owner: str
    requested_at: Time
    updated_at: Time
    position: int


class ProcessPage(Answered):
    """A page of processes, newest first."""

    count: Count
    total: Total
    next: NotRequired[NextOffset]
    position: Position


class Evolution(ProcessFields):
    """How an item was to be rewritten by a model, what the model proposed, and what became of it."""

    status: EvolutionStatus
    item_id: str
    base_version: int
    feedback: str
    apply: bool
    content: str | None
    task: str | None
    reason: str | None
    code: str | None
    usage: Usage | None


class EvolutionList(ProcessPage):
    """The evolutions that the caller asked for."""

    results: list[Evolution]


class FoundKnowledge(TypedDict):
    """What became of one piece of knowledge that was found."""

    knowledge_id: str
    action: ExtractionAction


class Extraction(ProcessFields):
    """Which knowledge was found in messages; `messages` is how many there were."""

    status: ExtractionStatus
    kind: ExtractionKind
    scopes: list[str]
    messages: int
    items: list[FoundKnowledge]
    reason: str | None
    code: str | None
    usage: Usage | None


class ExtractionList(ProcessPage):
    """The extractions that the caller asked for."""

    results: list[Extraction]


class Conflict(ProcessFields):
    """Two items that contradict each other, each at its version then."""

    status: ConflictStatus
    first: str
    first_version: int
    second: str
    second_version: int
    reason: str
    extraction: str | None
    winner: str | None
    decision: str | None


class ConflictList(ProcessPage):
    """What contradicts what, as far as it is the caller's to decide."""

    results: list[Conflict]


class DecidedEvolution(TypedDict):
    """What became of an evolution."""

    id: str
    status: Literal["applied", "rejected", "reverted"]
    item_id: str
    position: KeptAt
    event_id: str


class Resolved(TypedDict):
    """What was decided on a conflict; `retired` is the side that left recall, `merged`: the winner says both now."""

    id: str
    status: Literal["resolved"]
    winner: str | None
    retired: str | None
    merged: bool
    position: KeptAt


class Reverted(TypedDict):
    """Where it is kept that an item is again what it was; `status` is that of what a project shares."""

    id: str
    position: KeptAt
    event_id: str
    to_version: int
    version: int
    status: NotRequired[ItemStatus]


class ModelSet(TypedDict):
    """What is set for a work: the model (null: none), where it is, and what is wrong with it at the moment."""

    model: str | None
    url: Annotated[str | None, Field(description="Without user, password and query")]
    trouble: str | None


class ModelTried(TypedDict):
    """One call of a model; `error` is null when it answered."""

    seconds: float
    error: str | None


class ModelOfWork(ModelSet):
    """What a model does for a node, which one, and what works without it; `tried` is null where none was called."""

    work: ModelWork
    setting: Annotated[str, Field(description="The environment variable that sets it")]
    without: str
    tried: ModelTried | None


class ModelsOfNode(TypedDict):
    """The models of a node by work."""

    models: list[ModelOfWork]

"""What shapes do answers about models' work have? Those of evolutions, extractions, conflicts and reverts."""

from __future__ import annotations

from typing import Generic, Literal, TypedDict, TypeVar

from kledger.answers.knowledge import Answered, Changed

R = TypeVar("R")


class Usage(TypedDict):
    """What a model's answer cost; `cost_usd` is null where no price is known."""

    model: str
    prompt_version: str
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    calls: int


class Evolution(TypedDict):
    """How an item was to be rewritten by a model, what the model proposed, and what became of it."""

    id: str
    status: Literal["requested", "started", "proposed", "applied", "reverted", "rejected", "failed"]
    owner: str
    requested_at: str
    updated_at: str
    position: int
    item_id: str
    base_version: int
    feedback: str
    apply: bool
    content: str | None
    task: str | None
    reason: str | None
    code: str | None
    usage: Usage | None


class Evolving(Changed):
    """The same of a change that a model was asked to make; `done` when nothing more happens by itself."""

    evolution: Evolution
    done: bool


class Found(TypedDict):
    """What became of one piece of knowledge that was found."""

    knowledge_id: str
    action: Literal["saved", "confirmed", "conflict"]


class Extraction(TypedDict):
    """Which knowledge was found in messages."""

    id: str
    status: Literal["requested", "started", "completed", "failed"]
    owner: str
    requested_at: str
    updated_at: str
    position: int
    kind: str
    scopes: list[str]
    messages: int
    items: list[Found]
    reason: str | None
    code: str | None
    usage: Usage | None


class Conflict(TypedDict):
    """Two items that contradict each other, each at its version then."""

    id: str
    status: Literal["recorded", "resolved"]
    owner: str
    requested_at: str
    updated_at: str
    position: int
    first: str
    first_version: int
    second: str
    second_version: int
    reason: str
    extraction: str | None
    winner: str | None
    decision: str | None


class Page(Answered, Generic[R]):
    """A page of processes, newest first."""

    results: list[R]
    count: int
    total: int
    position: int


class Decided(TypedDict):
    """What became of an evolution."""

    id: str
    status: Literal["applied", "rejected", "reverted"]
    item_id: str
    position: int
    event_id: str


class Resolved(TypedDict):
    """What was decided on a conflict; `retired` is the side that left recall."""

    id: str
    status: Literal["resolved"]
    winner: str | None
    retired: str | None
    position: int


class Reverted(TypedDict):
    """Where it is kept that an item is again what it was."""

    id: str
    position: int
    event_id: str
    to_version: int
    version: int

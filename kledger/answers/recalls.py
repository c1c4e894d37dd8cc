"""Answers about recalls that were recorded: what was served to whom, and what it said then."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from kledger.answers.parts import Answered, Count, KeptAt, PastRetention, Position, Shortened, Time, Total
from kledger.contract.language import Language
from kledger.contract.recall import Intent
from kledger.contract.words import ItemStatus, RecallKind

ViewPosition = Annotated[int, Field(description="The log position that the recall knew")]
Policy = Annotated[str | None, Field(description="Names the settings that ranked; null of an earlier event")]


class RecallFields(TypedDict):
    """What is said of every recall: who asked what, when, and in which trace, message and session.

    `kind` `page` is a person who looked. `query` is empty where nothing was asked; `of` is how many items were served.
    """

    recall_id: str
    kind: RecallKind
    time: Time
    position: KeptAt
    view_position: ViewPosition
    actor: str
    trace_id: str | None
    message_id: str | None
    session: str | None
    intent: Intent | None
    language: Language | None
    policy: Policy
    query: str
    of: int


class ServedPlace(TypedDict):
    """The place of one item in a recall: `rank` 1 is the best. `match` is null where nothing was asked."""

    rank: int
    item_version: int
    relevance: float
    match: float | None


class RecallOfItem(RecallFields, ServedPlace):
    """A recall that served one item, and the place of the item in it."""


class RecallsOfItem(Answered):
    """A page of the recalls that served an item, newest first."""

    id: str
    results: list[RecallOfItem]
    count: Count
    total: Total
    next: int | None
    past_retention: NotRequired[PastRetention]
    position: Position


class RecallList(Answered):
    """A page of recalls, newest first."""

    results: list[RecallFields]
    count: Count
    total: Total
    next: int | None
    past_retention: NotRequired[PastRetention]
    position: Position


class ServedItem(ServedPlace):
    """An item as it was served, word for word; `version_now` and `status_now` are those that hold since."""

    id: str
    task: str
    content: str
    version_now: int
    status_now: ItemStatus
    shortened: NotRequired[Shortened]


class RecallShown(RecallFields, Answered):
    """One recall with what it served; `left_out` counts what of it the caller may not see now."""

    results: list[ServedItem]
    left_out: int

"""Answers about all that a caller sees: facets, the overview, and what changed."""

from __future__ import annotations

from typing import Annotated, Literal, NotRequired, get_args

from pydantic import Field
from typing_extensions import TypedDict

from kledger.answers.knowledge import ItemChange
from kledger.answers.parts import Answered, Position, Shortened, Time, Unmatching


class FacetValue(TypedDict):
    """A value and the number of items that have it."""

    value: str
    count: int


class Facets(Answered):
    """What the items that the caller sees and wants have, the values of most items first, 50 of each at most.

    `tags` are the words among the tags; a text of more than 100 characters is none.
    """

    types: list[FacetValue]
    tags: list[FacetValue]
    scopes: list[FacetValue]
    owners: list[FacetValue]
    layers: list[FacetValue]
    statuses: list[FacetValue]
    total: Annotated[int, Field(description="How many items there are")]
    unmatched: NotRequired[Unmatching]
    position: Position


class ItemsByLayer(TypedDict):
    """How many items are of each layer."""

    short: int
    semantic: int
    episodic: int
    procedural: int
    shared: int
    document: int
    plain: int


class OverviewLists(TypedDict):
    """The address of the list of what each number counts."""

    total: str
    expired: str
    proposed: str
    conflicting: str
    never_recalled: str


class Day(TypedDict):
    """What happened on a day, in UTC, with items that the caller sees now.

    `recalled` counts the recalls that served at least one of them, `helpful` and `harmful` the verdicts.
    """

    day: Annotated[str, Field(description="Such as 2026-03-05")]
    saved: int
    revised: int
    recalled: int
    helpful: int
    harmful: int


class ItemInBrief(TypedDict):
    """An item by what it is about and how it did."""

    id: str
    task: str
    helpful: int
    harmful: int
    confidence: float
    updated_at: Time
    shortened: NotRequired[Shortened]


class Overview(Answered):
    """The knowledge that the caller sees. `total` and what follows it are in recall; `expired` are over and not
    cleaned, `proposed` wait for a coordinator, `conflicting` are a side of an unresolved conflict.

    `days` are the last ones, the earliest first, empty ones too. `most_helpful` have more helpful verdicts than harmful
    ones; `turned_harmful` have more harmful ones than helpful ones, or their last two verdicts are both harmful;
    `never_recalled_items` are the oldest ones that no recall has served.
    """

    total: int
    by_layer: ItemsByLayer
    mean_confidence: float | None
    expired: int
    proposed: int
    conflicting: int
    never_recalled: int
    lists: OverviewLists
    days: list[Day]
    most_helpful: list[ItemInBrief]
    turned_harmful: list[ItemInBrief]
    never_recalled_items: list[ItemInBrief]
    position: Position


ChangeKind = Literal[ItemChange, "rated", "confirmed"]
CHANGE_KINDS: tuple[str, ...] = get_args(ChangeKind)


class Change(TypedDict):
    """One change of an item: a version by its verb, or a verdict on it (`rated`, `confirmed`), which makes no version.

    `version` is the one that the change made, or that was judged; `task` is the item's as it is now.
    """

    id: str
    task: str
    change: ChangeKind
    version: int
    position: int
    time: Time
    actor: str


class Changes(Answered):
    """What changed after a position, oldest first; ask again after `next`.

    An item that the caller sees no more is not told of: who shows it reads it again from time to time.
    """

    changes: list[Change]
    next: Annotated[int, Field(description="The position after which to ask again")]
    unmatched: NotRequired[Unmatching]
    position: Position

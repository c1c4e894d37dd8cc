"""Answers about slims: similar items merged, and brought back."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from kledger.answers.models import ProcessFields, ProcessPage
from kledger.answers.parts import Answered, JsonDocument, Shortened, Usage
from kledger.contract.words import SlimStatus


class Similar(TypedDict):
    """An item that is merged into another, and how similar the two are (0 to 1)."""

    id: str
    similarity: float


class SlimGroup(TypedDict):
    """Items that say the same: which stays, which are merged into it, what a model wrote; `skipped`: why it was left as
    it is, or (while the slim waits) would be left now, since its items have changed."""

    group: int
    survivor: str
    merged: list[Similar]
    types: list[str] | None
    task: str | None
    content: str | None
    tags: JsonDocument | None
    usage: Usage | None
    skipped: str | None
    shortened: NotRequired[Shortened]


class SlimSummary(ProcessFields):
    """How far a slim is, and what it was asked for."""

    status: SlimStatus
    scopes: list[str] | None
    model: str | None
    threshold: float
    dry_run: bool
    candidates: int | None
    seconds: float | None
    items_before: int | None
    reason: str | None
    code: str | None


class Slim(SlimSummary):
    """A slim with its groups; `merged` counts items, `done` says that nothing more happens by itself."""

    groups: list[SlimGroup]
    merged: int
    items_after: int | None
    usage: Usage | None
    note: str | None
    done: bool


class ReadSlim(Slim, Answered):
    """A slim as it is read."""


class SlimList(ProcessPage):
    """A page of slims, without their groups."""

    results: list[SlimSummary]

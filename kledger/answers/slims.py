"""What shapes do the answers about slims have? The JSON documents of the HTTP door, as types; nothing is checked."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from kledger.answers.knowledge import Answered, Degraded


class SlimGroup(TypedDict):
    """Items that say the same: who stays, who is merged into it, what a model wrote, why it was left as it is."""

    group: int
    survivor: str
    merged: list[dict[str, Any]]
    types: list[str] | None
    task: str | None
    content: str | None
    tags: dict[str, Any] | None
    usage: dict[str, Any] | None
    skipped: str | None


class SlimSummary(TypedDict):
    """How far a slim is, and what it was asked for."""

    id: str
    status: str
    owner: str
    requested_at: str
    updated_at: str
    position: int
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
    usage: dict[str, Any] | None
    note: str | None
    done: bool
    degraded: NotRequired[list[Degraded]]


class SlimList(Answered):
    """A page of slims."""

    results: list[SlimSummary]
    count: int
    total: int
    position: int

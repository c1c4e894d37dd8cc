"""Outcomes of operations: what was saved or changed, and pages of a list."""

from __future__ import annotations

from dataclasses import dataclass, field

from ledger.event import JsonObject

ATTEMPTS = 6
"""How often a change is tried while others write to the same item."""


@dataclass(frozen=True, slots=True)
class Saved:
    """A saved item and its position. `duplicate`: the same save was in the log already, and nothing was appended.

    `warnings` name what was saved and will not work as it is: see producers/operations/knowledge/unreadable.py.
    """

    id: str
    position: int
    version: int
    event_id: str
    duplicate: bool
    warnings: list[JsonObject] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Changed:
    """The event of a change of one item, and its position."""

    id: str
    position: int
    event_id: str


@dataclass(frozen=True, slots=True)
class Listed:
    """One page, newest first: `count` items on it, `total` that match, `next` is where the next page begins."""

    results: list[JsonObject]
    count: int
    total: int
    next: int | None
    position: int

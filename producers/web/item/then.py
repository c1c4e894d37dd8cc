"""An item as it was then: the positions at which it changed or was judged, and what it said at one of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kledger.answers.knowledge import History, ItemVersion, WholeItem
from kledger.client.clients import AsyncLedgerClient
from kledger.contract.errors import UnknownKnowledge
from producers.web.visit import Visit

STEPS = 100
"""Versions and verdicts whose positions are looked up at once."""
_WITHOUT_OFFSET = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d(:\d\d(\.\d+)?)?")


@dataclass(frozen=True, slots=True)
class Then:
    """An item at one moment of its life. `item` is None where it was not there, and `missing` says so.

    `at` is the last position at or before that moment at which something of it changed; `asked` is None for now.
    """

    item: WholeItem | None
    missing: str
    asked: str | None
    at: int
    positions: list[int]
    previous: int | None
    following: int | None
    versions: Sequence[ItemVersion]
    """The latest ones of its life."""


def as_of(visit: Visit) -> str | None:
    """The position or moment that was asked for; a moment of a form states no offset, and is in UTC.

    A browser leaves out seconds that are none.
    """
    asked = visit.text("as_of")
    if asked is None or not _WITHOUT_OFFSET.fullmatch(asked):
        return asked
    return f"{asked}:00Z" if asked.count(":") == 1 else f"{asked}Z"


async def then_of(ledger: AsyncLedgerClient, item_id: str, asked: str | None) -> Then:
    """The item as of what was asked. Raises UnknownKnowledge where there is none to see, InvalidPayload."""
    item, missing = None, ""
    before = None
    if asked is not None:
        try:
            item = await ledger.get(item_id, as_of=asked)
        except UnknownKnowledge as error:
            missing = error.message
    life = await ledger.history(item_id, limit=STEPS, shorten=0)
    positions = _positions(life)
    at = item["position"] if item is not None else _number(asked, positions)
    if positions and at < positions[0]:  # of a long life: those around that moment
        before = _positions(await ledger.history(item_id, limit=STEPS, before=at + 1, shorten=0))
        positions = [*before, *positions[:1]]
    earlier = [each for each in positions if each < at]
    later = [each for each in positions if each > at]
    return Then(
        item, missing, asked, at, positions, max(earlier, default=None), min(later, default=None), life["versions"]
    )


def _positions(life: History) -> list[int]:
    return sorted({each["valid_from"] for each in life["versions"]} | {each["position"] for each in life["feedback"]})


def _number(asked: str | None, positions: list[int]) -> int:
    """Where the reader is, of an item that was not there then, or as it is now."""
    if asked is None:
        return positions[-1] if positions else 0
    return min(int(asked), 2**53) if asked.isascii() and asked.isdecimal() else 0

"""A node that ends between any two appends of an ingestion or removal: the same request, sent again, completes it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from kledger.contract.errors import BrokerUnavailable
from ledger.event import Appended, NewEvent
from ledger.store.in_memory import MemoryLedger
from producers.operations.documents import ingesting
from tests.doors.http_door import ALICE, Door, http_door

BEFORE = "".join(f"# Section {n}\n\nWhat section {n} says.\n\n" for n in range(8))
AFTER = BEFORE.replace("section 2 says", "section 2 says now").replace("section 5 says", "section 5 says now")
SMALL_BATCH = 4
"""The first batch of the edit has the two that are retired, the document, and one of the two that are saved."""


class Mortal:
    """A ledger whose node ends at the append number `at`: before it is kept, or after it, without an answer."""

    def __init__(self, inner: MemoryLedger, at: int, kept: bool) -> None:
        self._inner, self._left, self._kept = inner, at, kept

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def append(self, event: NewEvent) -> Appended:
        return (await self.append_many([event]))[0]

    async def append_many(self, events: Sequence[NewEvent]) -> list[Appended]:
        self._left -= 1
        if self._left == 0 and not self._kept:
            raise BrokerUnavailable("the node ends before this is kept")
        appended = await self._inner.append_many(events)
        if self._left == 0:
            raise BrokerUnavailable("the node ends before this is answered")
        return appended


@pytest.fixture
async def door(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Door]:
    monkeypatch.setattr(ingesting, "MAX_MESSAGES", SMALL_BATCH)
    async with http_door() as opened:
        yield opened


@contextmanager
def ending(door: Door, at: int, kept: bool) -> Iterator[None]:
    """The door of a node that ends."""
    inner = door.desk.ledger
    door.desk.ledger = Mortal(inner, at, kept)  # type: ignore[assignment]
    try:
        yield
    finally:
        door.desk.ledger = inner


async def ingest(door: Door, text: str) -> int:
    answer = await door.post("/api/documents", json={"id": "d", "text": text}, headers=ALICE)
    await door.desk.view.wait_for(await door.head())
    return answer.status_code


async def told(door: Door) -> tuple[list[str], list[str], int]:
    """The active chunks of the document, every active item, and how many items there ever were."""
    document = (await door.get("/api/documents/d?limit=100", headers=ALICE)).json()
    chunks = [each["content"] for each in document["chunks"] if each["status"] == "active"]
    items = (await door.get("/api/knowledge?status=all&limit=100", headers=ALICE)).json()["results"]
    return chunks, sorted(each["content"] for each in items if each["status"] == "active"), len(items)


def said(text: str) -> list[str]:
    return [each for each in text.split("\n\n") if each and not each.startswith("#")]


@pytest.mark.parametrize("kept", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", [1, 2, 3, 4])
async def test_a_first_ingestion_that_ended_is_completed_by_the_next(door: Door, at: int, kept: bool) -> None:
    with ending(door, at, kept):
        assert await ingest(door, BEFORE) == 503
    assert await ingest(door, BEFORE) == 201
    chunks, items, ever = await told(door)
    assert chunks == said(BEFORE)
    assert items == sorted(chunks)
    assert ever == len(chunks)


@pytest.mark.parametrize("kept", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", [1, 2, 3])
@pytest.mark.parametrize("then", [AFTER, BEFORE], ids=["again", "as_it_was"])
async def test_an_edit_that_ended_is_completed_or_undone_by_the_next(
    door: Door, at: int, kept: bool, then: str
) -> None:
    assert await ingest(door, BEFORE) == 201
    with ending(door, at, kept):
        assert await ingest(door, AFTER) == 503
    assert await ingest(door, then) == 201
    chunks, items, _ = await told(door)
    assert chunks == said(then)
    assert items == sorted(chunks)
    head = await door.head()
    assert await ingest(door, then) == 201
    assert await door.head() == head


@pytest.mark.parametrize("kept", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", [1, 2])
async def test_a_removal_that_ended_has_removed_all_or_nothing(door: Door, at: int, kept: bool) -> None:
    assert await ingest(door, BEFORE) == 201
    with ending(door, at, kept):
        assert (await door.delete("/api/documents/d", headers=ALICE)).status_code == 503
    await door.desk.view.wait_for(await door.head())
    _, items, _ = await told(door)
    assert items == (sorted(said(BEFORE)) if (at, kept) == (1, False) else [])

"""Recalls are appended after their answers: together, before all that is appended later, and none is lost unseen."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from kledger.contract.errors import BrokerUnavailable, IllegalSubject
from ledger.event import Appended, NewEvent
from ledger.events.recall import RecallServed
from ledger.store.in_memory import MemoryLedger
from producers.operations import gathered_recalls
from producers.operations.gathered_recalls import GatheringLedger
from producers.operations.publish import Tally
from tests.patience import PATIENCE
from tests.projections.histories import saved

LONG = PATIENCE  # so long that nothing happens because time is over


class Watched(MemoryLedger):
    """A ledger that notes what comes together, and can be made to fail or to take its time."""

    def __init__(self) -> None:
        super().__init__()
        self.together: list[list[str]] = []
        self.down = False
        self.opened = asyncio.Event()
        self.opened.set()
        self._stored = asyncio.Condition()

    async def has(self, appends: int) -> None:
        """Return once so many appends were made."""
        async with self._stored, asyncio.timeout(PATIENCE):
            await self._stored.wait_for(lambda: len(self.together) >= appends)

    async def append(self, event: NewEvent) -> Appended:
        (appended,) = await self._noted([event], lambda: super(Watched, self).append_many([event]))
        return appended

    async def append_many(self, events: Sequence[NewEvent]) -> list[Appended]:
        return await self._noted(events, lambda: super(Watched, self).append_many(events))

    async def _noted(
        self, events: Sequence[NewEvent], append: Callable[[], Awaitable[list[Appended]]]
    ) -> list[Appended]:
        await self.opened.wait()
        if self.down:
            raise BrokerUnavailable("the broker is away")
        if any(event.entity_id == "bad" for event in events):
            raise IllegalSubject("no subject can have this")
        appended = await append()
        async with self._stored:
            self.together.append([event.entity_id for event in events])
            self._stored.notify_all()
        return appended


@pytest.fixture
def below() -> Watched:
    return Watched()


@pytest.fixture
def tally() -> Tally:
    return Tally()


def gathering(below: Watched, tally: Tally, seconds: float = LONG) -> GatheringLedger:
    return GatheringLedger(below, tally, seconds=seconds)


def recall(name: str, query: str = "q") -> NewEvent:
    return NewEvent(
        RecallServed(kind="search", query=query, visible_scopes=["public"], items=[], view_position=0), name, "user:ann"
    )


async def test_recalls_wait_for_each_other_and_are_appended_together_once_time_is_over(
    below: Watched, tally: Tally
) -> None:
    ledger = gathering(below, tally, seconds=0.01)
    assert [await ledger.record(recall(name), LONG) for name in "abc"] == [True] * 3
    assert below.together == []  # none of the answers waited
    await below.has(1)
    await ledger.flushed()
    assert (below.together, ledger.position) == ([["a", "b", "c"]], 3)
    assert (tally.recalls_lost, tally.appended) == (0, {RecallServed.name: 3})


async def test_so_many_recalls_wait_for_no_more(below: Watched, tally: Tally, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathered_recalls, "MOST_TOGETHER", 2)
    ledger = gathering(below, tally)
    for name in "abcde":
        await ledger.record(recall(name), LONG)
    await below.has(2)
    assert (below.together, ledger.waiting) == ([["a", "b"], ["c", "d"]], 1)
    await ledger.flushed()
    assert below.together[-1] == ["e"]


async def test_what_is_appended_or_read_later_finds_the_recalls_that_were_answered(
    below: Watched, tally: Tally
) -> None:
    ledger = gathering(below, tally)
    await ledger.record(recall("a"), LONG)
    assert (await ledger.append(saved("k"))).position == 2
    await ledger.record(recall("b"), LONG)
    assert [each.position for each in await ledger.append_many([saved("l"), saved("m")])] == [4, 5]
    await ledger.record(recall("c"), LONG)
    assert (await ledger.head()).position == 6
    await ledger.record(recall("d"), LONG)
    assert await ledger.last_position_of("default", "recall", "d") == 7
    await ledger.record(recall("e"), LONG)
    assert [event.position async for events in ledger.read() for event in events] == list(range(1, 9))
    assert [each for together in below.together for each in together] == ["a", "k", "b", "l", "m", "c", "d", "e"]


async def test_a_recall_that_is_at_fault_takes_no_other_with_it(below: Watched, tally: Tally) -> None:
    ledger = gathering(below, tally)
    assert not await ledger.record(recall("nul", query="\0"), LONG)
    for name in ("a", "bad", "b"):
        assert await ledger.record(recall(name), LONG)
    await ledger.flushed()
    assert (below.together, tally.recalls_lost) == ([["a"], ["b"]], 2)


async def test_while_none_can_be_appended_an_answer_waits_for_its_own_and_names_none(
    below: Watched, tally: Tally
) -> None:
    ledger = gathering(below, tally)
    below.down = True
    assert await ledger.record(recall("a"), LONG)  # nobody knows yet
    await ledger.flushed()
    assert tally.recalls_lost == 1
    assert not await ledger.record(recall("b"), LONG)
    assert tally.recalls_lost == 2
    below.opened.clear()
    assert not await ledger.record(recall("c"), 0)  # longer than an answer waits
    below.down = False
    below.opened.set()
    assert await ledger.record(recall("d"), LONG)
    assert (below.together, tally.recalls_lost) == ([["c"], ["d"]], 2)
    assert await ledger.record(recall("e"), LONG)
    assert len(below.together) == 2  # and is waited for no more
    await ledger.flushed()


async def test_with_too_many_that_wait_an_answer_waits_for_room_or_goes_without(
    below: Watched, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gathered_recalls, "MOST_WAITING", 2)
    ledger = gathering(below, tally)
    below.opened.clear()
    for name in "ab":
        await ledger.record(recall(name), LONG)
    assert not await ledger.record(recall("c"), 0)
    assert tally.recalls_lost == 1
    third = asyncio.create_task(ledger.record(recall("d"), LONG))
    below.opened.set()
    assert await third
    await ledger.flushed()
    assert below.together == [["a", "b"], ["d"]]


async def test_a_stop_appends_what_waits_and_counts_what_cannot_be(
    below: Watched, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = gathering(below, tally)
    await ledger.record(recall("a"), LONG)
    await ledger.close()
    assert (below.together, tally.recalls_lost) == ([["a"]], 0)
    assert not await ledger.record(recall("b"), LONG)
    assert tally.recalls_lost == 1
    stuck = gathering(below, tally)
    monkeypatch.setattr(gathered_recalls, "CLOSES_WITHIN_SECONDS", 0.01)
    below.opened.clear()
    for name in "cd":
        await stuck.record(recall(name), LONG)
    await stuck.close()
    assert tally.recalls_lost == 3

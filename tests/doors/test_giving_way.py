"""Work in bulk rests while somebody searches, and only then."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from kledger.contract.scopes import Caller
from kledger.requests.knowledge import SaveManyRequest
from ledger.event import Lineage
from producers.operations import backpressure
from producers.operations.backpressure import LONGEST_REST_SECONDS, REST_FACTOR, Turns
from producers.operations.bulk import importing
from producers.operations.publish import Tally
from producers.operations.recall import search as recall
from tests.doors.live_desk import live_desk

PAYLOADS = [{"task": f"task {number}", "content": "content", "types": ["tool"]} for number in range(600)]


class Clock:
    """A clock that nothing but work and rests moves, and not twice for rests at the same time."""

    def __init__(self) -> None:
        self.now = 100.0
        self.rests: list[float] = []

    def monotonic(self) -> float:
        return self.now

    perf_counter = monotonic

    async def sleep(self, seconds: float) -> None:
        woken_at = self.now + seconds
        self.rests.append(seconds)
        await asyncio.sleep(0)
        self.now = max(self.now, woken_at)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock by which bulk work works and rests."""
    clock = Clock()
    monkeypatch.setattr(backpressure, "asyncio", clock)
    monkeypatch.setattr(backpressure, "time", clock)
    return clock


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long bulk work rested, each time."""
    found: list[float] = []

    async def rest(seconds: float) -> None:
        found.append(seconds)
        await asyncio.sleep(seconds)

    monkeypatch.setattr(backpressure, "asyncio", SimpleNamespace(sleep=rest))
    return found


@pytest.mark.parametrize(("worked", "rested"), [(0.01, 0.01 * REST_FACTOR), (3.0, LONGEST_REST_SECONDS)])
async def test_it_rests_for_a_multiple_of_what_it_worked_while_somebody_searches(
    clock: Clock, worked: float, rested: float
) -> None:
    turns = Turns(tally := Tally())
    clock.now += worked
    tally.searched_at = clock.now
    await turns.give_way()
    assert sum(clock.rests) == pytest.approx(rested)


async def test_several_rest_for_as_long_as_all_of_them_worked(clock: Clock) -> None:
    tally = Tally(searched_at=clock.now)
    first, second = Turns(tally), Turns(tally)
    clock.now += 0.01
    began = clock.now
    await asyncio.gather(first.give_way(), second.give_way())
    assert clock.now - began == pytest.approx(2 * 0.01 * REST_FACTOR)


async def test_it_only_gives_way_when_nobody_searches(clock: Clock) -> None:
    for searched_at in (float("-inf"), clock.now - backpressure.SEARCHED_RECENTLY_SECONDS):
        turns = Turns(Tally(searched_at=searched_at))
        clock.now += 0.001
        await turns.give_way()
    assert clock.rests == [0, 0]


async def test_an_import_rests_after_a_search_and_not_before(rests: list[float]) -> None:
    async with live_desk() as desk:
        caller = Caller()
        first = SaveManyRequest(items=PAYLOADS[:300])
        assert (await importing.save_many(desk, caller, Lineage(), first))["saved"] == 300
        before = len(rests)
        assert before > 0
        assert not any(rests)
        await recall.search(desk, caller, Lineage(), "task")
        second = SaveManyRequest(items=PAYLOADS[300:])
        assert (await importing.save_many(desk, caller, Lineage(), second))["saved"] == 300
        assert any(rests[before:])

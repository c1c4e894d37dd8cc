"""Work in bulk rests while somebody searches, and only then."""

from __future__ import annotations

import asyncio
import time
from types import SimpleNamespace

import pytest

from ledger.event import Lineage
from ledger.scopes import Caller
from producers.operations import giving_way, importing, recall
from producers.operations.giving_way import LONGEST_REST_SECONDS, REST_FACTOR, Turns
from producers.publish import Tally
from producers.requests import SaveManyRequest
from tests.doors.live_desk import live_desk

PAYLOADS = [{"task": f"task {number}", "content": "content", "types": ["tool"]} for number in range(600)]


@pytest.fixture
def rests(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long bulk work rested, each time; it gives way without resting."""
    found: list[float] = []

    async def rest(seconds: float) -> None:
        found.append(seconds)
        await asyncio.sleep(0)

    monkeypatch.setattr(giving_way, "asyncio", SimpleNamespace(sleep=rest))
    return found


@pytest.mark.parametrize(("worked", "rested"), [(0.01, 0.01 * REST_FACTOR), (3.0, LONGEST_REST_SECONDS)])
async def test_it_rests_for_a_multiple_of_what_it_worked_while_somebody_searches(
    rests: list[float], monkeypatch: pytest.MonkeyPatch, worked: float, rested: float
) -> None:
    clock = SimpleNamespace(perf_counter=iter([0.0, worked, worked]).__next__, monotonic=lambda: 100.0)
    monkeypatch.setattr(giving_way, "time", clock)
    await Turns(Tally(searched_at=99.9)).give_way()
    assert rests == [rested]


async def test_it_only_gives_way_when_nobody_searches(rests: list[float]) -> None:
    await Turns(Tally()).give_way()
    await Turns(Tally(searched_at=time.monotonic() - giving_way.SEARCHED_RECENTLY_SECONDS)).give_way()
    assert rests == [0, 0]


async def test_an_import_rests_after_a_search_and_not_before(rests: list[float]) -> None:
    async with live_desk() as desk:
        caller = Caller()
        first = SaveManyRequest(items=PAYLOADS[:300])
        assert (await importing.save_many(desk, caller, Lineage(), first)).saved == 300
        before = len(rests)
        assert before > 0
        assert not any(rests)
        await recall.search(desk, caller, Lineage(), "task")
        second = SaveManyRequest(items=PAYLOADS[300:])
        assert (await importing.save_many(desk, caller, Lineage(), second)).saved == 300
        assert any(rests[before:])

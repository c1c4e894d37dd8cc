"""What is sealed for one person can be held back; what is sealed for others goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from kledger.contract.errors import IllegalState
from ledger.event import Appended, NewEvent
from ledger.events.goal import GoalFocused
from ledger.privacy import holding_back
from ledger.privacy.vault import MemoryVault
from ledger.stream import Change
from producers.operations.sealing import SealingLedger
from projections.live.persons import PersonsOfItems
from tests.doors.live_desk import live_desk


def said(user: str) -> NewEvent:
    return NewEvent(GoalFocused(goal_id="g", owner=user, description="ship it"), user, user)


async def test_an_append_for_a_held_person_waits_and_others_go_on() -> None:
    async with live_desk() as desk:
        ledger = SealingLedger(desk.ledger, MemoryVault(), PersonsOfItems(desk.view).of)
        async with ledger.holding.held_back("user:mei"):
            waiting = asyncio.create_task(ledger.append(said("user:mei")))
            other = await ledger.append(said("user:jonas"))
            assert not waiting.done()
        assert (await waiting).position > other.position


class Slow:
    """A ledger whose appends wait until they may go on."""

    def __init__(self) -> None:
        self.begun, self.may = asyncio.Event(), asyncio.Event()

    async def append(self, event: NewEvent) -> Appended:
        self.begun.set()
        await self.may.wait()
        return Appended(1, event.id)


async def test_what_is_under_way_is_stored_before_a_person_is_held() -> None:
    async with live_desk() as desk:
        slow = Slow()
        ledger = SealingLedger(slow, MemoryVault(), PersonsOfItems(desk.view).of)  # type: ignore[arg-type]  # it appends alone
        append = asyncio.create_task(ledger.append(said("user:mei")))
        await slow.begun.wait()
        with pytest.raises(IllegalState, match="try again"):
            async with ledger.holding.held_back("user:mei", within=0.01):
                raise AssertionError("held while something is under way")

        async def held() -> None:
            async with ledger.holding.held_back("user:mei"):
                assert append.done()

        holding = asyncio.create_task(held())
        slow.may.set()
        await holding
        await append


class InPieces:
    """A ledger that takes two pieces of a list, and waits between them until it may go on."""

    def __init__(self) -> None:
        self.begun, self.may = asyncio.Event(), asyncio.Event()

    async def append_changed(self, events: Sequence[NewEvent], change: Change) -> list[Appended]:
        await change(events[:1])
        self.begun.set()
        await self.may.wait()
        await change(events[1:])
        return [Appended(number, event.id) for number, event in enumerate(events, 1)]


async def test_a_list_goes_on_with_a_person_whom_a_forgetting_waits_for() -> None:
    async with live_desk() as desk:
        pieces = InPieces()
        ledger = SealingLedger(pieces, MemoryVault(), PersonsOfItems(desk.view).of)  # type: ignore[arg-type]  # it appends lists alone
        append = asyncio.create_task(ledger.append_many([said("user:mei"), said("user:mei"), said("user:jonas")]))
        await pieces.begun.wait()

        async def held() -> None:
            async with ledger.holding.held_back("user:mei"):
                assert append.done()

        holding = asyncio.create_task(held())
        await asyncio.sleep(0)  # it waits from here on
        pieces.may.set()
        assert len(await append) == 3
        await holding
        async with ledger.holding.held_back("user:mei"), ledger.holding.held_back("user:jonas"):
            pass  # nothing of the list is under way any more


async def test_a_list_for_a_held_person_waits_before_the_log_has_anything_of_it() -> None:
    """A broker takes few lists at a time: those that wait would keep those of others from it."""
    async with live_desk() as desk:
        pieces = InPieces()
        pieces.may.set()
        ledger = SealingLedger(pieces, MemoryVault(), PersonsOfItems(desk.view).of)  # type: ignore[arg-type]  # it appends lists alone
        async with ledger.holding.held_back("user:jonas"):
            waiting = asyncio.create_task(ledger.append_many([said("user:mei"), said("user:jonas")]))
            other = await ledger.append_many([said("user:mei"), said("user:mei")])
            assert len(other) == 2
            pieces.begun.clear()
            await asyncio.sleep(0)
            assert not pieces.begun.is_set()
            assert not waiting.done()
        await waiting
        assert pieces.begun.is_set()


async def test_an_append_that_waits_for_too_long_is_refused_and_stores_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(holding_back, "HELD_SECONDS", 0.01)
    async with live_desk() as desk:
        ledger = SealingLedger(desk.ledger, MemoryVault(), PersonsOfItems(desk.view).of)
        before = await desk.ledger.head()
        async with ledger.holding.held_back("user:mei"):
            with pytest.raises(IllegalState, match="being forgotten"):
                await ledger.append(said("user:mei"))
        assert await desk.ledger.head() == before


async def test_a_person_is_released_after_a_failure_and_held_once() -> None:
    async with live_desk() as desk:
        ledger = SealingLedger(desk.ledger, MemoryVault(), PersonsOfItems(desk.view).of)
        with pytest.raises(IllegalState, match="already"):
            async with ledger.holding.held_back("user:mei"), ledger.holding.held_back("user:mei"):
                raise AssertionError("held twice")
        assert (await ledger.append(said("user:mei"))).position > 0

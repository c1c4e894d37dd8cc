"""What is sealed for one person can be held back; what is sealed for others goes on."""

from __future__ import annotations

import asyncio

import pytest

from kledger.contract.errors import IllegalState
from ledger.event import NewEvent
from ledger.events.goal import GoalFocused
from ledger.privacy.vault import MemoryVault
from producers.operations.sealing import SealingLedger
from projections.live.persons import PersonsOfItems
from tests.doors.live_desk import live_desk


def said(user: str) -> NewEvent:
    return NewEvent(GoalFocused(goal_id="g", owner=user, description="ship it"), user, user)


async def test_an_append_for_a_held_person_waits_and_others_go_on() -> None:
    async with live_desk() as desk:
        ledger = SealingLedger(desk.ledger, MemoryVault(), PersonsOfItems(desk.view).of)
        async with ledger.held_back("user:mei"):
            waiting = asyncio.create_task(ledger.append(said("user:mei")))
            other = await ledger.append(said("user:jonas"))
            assert not waiting.done()
        assert (await waiting).position > other.position


async def test_a_person_is_released_after_a_failure_and_held_once() -> None:
    async with live_desk() as desk:
        ledger = SealingLedger(desk.ledger, MemoryVault(), PersonsOfItems(desk.view).of)
        with pytest.raises(IllegalState, match="already"):
            async with ledger.held_back("user:mei"), ledger.held_back("user:mei"):
                raise AssertionError("held twice")
        assert (await ledger.append(said("user:mei"))).position > 0

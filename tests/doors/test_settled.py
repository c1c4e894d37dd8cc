"""Whoever waits for a model's work hears of its end, whenever it is folded: also while the waiter was looking."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from kledger.contract.scopes import Caller
from ledger.event import Lineage, NewEvent
from ledger.events.extraction import ExtractionCompleted, ExtractionRequested
from ledger.events.usage import Usage
from producers.operations.models.processes import settled
from projections.views.processes.ask import Process
from tests.doors.live_desk import LiveDesk, live_desk

MEI = Caller(user="mei")
WAITS = 600.0
"""Seconds that the waiter may take: far more than the test itself, which fails where the wait is whole."""


@pytest.fixture
async def desk() -> AsyncIterator[LiveDesk]:
    async with live_desk() as opened:
        yield opened


async def state(desk: LiveDesk, fact: ExtractionRequested | ExtractionCompleted) -> int:
    event = NewEvent(fact, "extraction-1", "user:mei", desk.org, Lineage())
    return (await desk.ledger.append(event)).position


async def test_an_end_that_is_folded_while_the_waiter_looks_is_not_missed(desk: LiveDesk) -> None:
    await state(
        desk,
        ExtractionRequested(kind="statement", messages=[{"content": "tea"}], owner="user:mei", scopes=["user:mei"]),
    )
    looked_at: list[str] = []

    async def is_settled(process: Process) -> bool:
        looked_at.append(process.status)
        if len(looked_at) == 1:  # what it was shown is true no more when it answers
            usage = Usage(model="m", prompt_version="p", calls=1)
            await desk.view.wait_for(await state(desk, ExtractionCompleted(items=[], usage=usage)), 60.0)
        return process.status == "completed"

    async with asyncio.timeout(WAITS / 6):
        found, done = await settled(desk, MEI, "extraction", "extraction-1", is_settled, WAITS)
    assert (found.status, done) == ("completed", True)
    assert len(looked_at) == 2

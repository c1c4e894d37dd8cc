"""When is a list handed over that is still growing? When somebody waits for it, and soon in any case."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing

import pytest

from ledger import delivery
from ledger.event import NewEvent
from ledger.jetstream import JetStreamLedger

Make = Callable[..., NewEvent]


async def test_an_eighth_of_a_list_is_handed_over_though_nobody_waits(
    jetstream_ledger: JetStreamLedger, new_saved: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "_GATHER_S", 3_600.0)
    await jetstream_ledger.append_many([new_saved(f"item-{number}") for number in range(200)])
    async with asyncio.timeout(20), aclosing(jetstream_ledger.read(batch=1_000, awaited=asyncio.Event())) as lists:
        assert 125 <= len(await anext(lists)) <= 200


async def test_what_comes_in_bulk_gathers_until_somebody_waits_for_it(
    jetstream_ledger: JetStreamLedger, new_saved: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "_GATHER_S", 3_600.0)
    awaited, arrived, lists = asyncio.Event(), asyncio.Event(), list[list[int]]()

    async def follow() -> None:
        async for events in jetstream_ledger.read(follow=True, batch=1_000, awaited=awaited):
            lists.append([event.position for event in events])
            arrived.set()

    reading = asyncio.create_task(follow())
    try:
        await jetstream_ledger.append_many([new_saved(f"first-{number}") for number in range(20)])
        await jetstream_ledger.append_many([new_saved(f"then-{number}") for number in range(20)])
        assert lists == []
        awaited.set()
        async with asyncio.timeout(20):
            while sum(map(len, lists)) < 40:
                await arrived.wait()
                arrived.clear()
    finally:
        reading.cancel()
        await asyncio.wait([reading])
    assert [position for some in lists for position in some] == list(range(1, 41))

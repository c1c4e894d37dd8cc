"""A stream of several copies is read whole, though the copy that delivers lags behind the one that names the head."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kledger.contract.errors import LogGap
from ledger.broker.access import LEDGER_STREAM, BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.event import JsonObject, NewEvent
from ledger.store.jetstream import JetStreamLedger
from ledger.store.reader import read_stream

Make = Callable[..., NewEvent]


async def of_copies(access: BrokerAccess, ahead: Callable[[], int]) -> BrokerConnection:
    """A connection to a stream of three copies, whose head is `ahead` of the copy that delivers events."""
    connection = await BrokerConnection.open(access, "node")
    honest = connection.api

    async def api(what: str, *args: Any, **kwargs: Any) -> JsonObject:
        info = await honest(what, *args, **kwargs)
        if what == "STREAM.INFO.LEDGER":
            info["config"]["num_replicas"] = 3
            info["state"]["last_seq"] += ahead()
        return info

    connection.api = api  # type: ignore[method-assign, assignment]  # no server can be told to lag
    return connection


async def test_a_copy_that_lags_behind_is_waited_for_and_is_no_gap(
    access: BrokerAccess, jetstream_ledger: JetStreamLedger, new_saved: Make
) -> None:
    await jetstream_ledger.append_many([new_saved(f"item-{n}") for n in range(10)])
    looks: list[int] = []
    looked_again = asyncio.Event()

    def ahead() -> int:
        looks.append(1)
        if len(looks) == 2:
            looked_again.set()
        return 5 if len(looks) < 3 else 0

    async def catch_up() -> None:
        await looked_again.wait()
        await jetstream_ledger.append_many([new_saved(f"late-{n}") for n in range(5)])

    connection = await of_copies(access, ahead)
    late = asyncio.create_task(catch_up())
    seen: list[int] = []
    async for events in read_stream(connection, LEDGER_STREAM, 1, follow=False, batch=100):
        seen += [event.position for event in events]
    await late
    assert seen == list(range(1, 16))
    await connection.close()


async def test_events_that_no_copy_brings_back_are_a_gap(
    access: BrokerAccess, jetstream_ledger: JetStreamLedger, new_saved: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ledger.store.reader.COPIES_CATCH_UP_S", 3.0)
    await jetstream_ledger.append_many([new_saved(f"item-{n}") for n in range(10)])
    connection = await of_copies(access, lambda: 5)
    with pytest.raises(LogGap) as gap:
        async for _ in read_stream(connection, LEDGER_STREAM, 1, follow=False, batch=100):
            pass
    assert (gap.value.details["first"], gap.value.details["last"]) == (11, 15)
    await connection.close()

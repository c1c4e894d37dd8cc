"""A node to whose log nothing comes says that it is well once the log can be read, without an event to show it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import pytest

from kledger.contract.errors import BrokerUnavailable
from ledger.broker.connection import BrokerConnection
from ledger.event import JsonObject, StoredEvent
from ledger.store import reader
from ledger.store.in_memory import MemoryLedger
from ledger.store.pull_consumer import Interrupted
from projections.engine.duckdb import open_view
from projections.engine.view import Instance, View
from projections.live.projector import Projector
from tests.patience import comes_true
from tests.projections.histories import saved


class Unreadable(MemoryLedger):
    """A log that cannot be followed while it is `lost`, with the error of a broker that was silent."""

    lost = True
    tries = 0

    async def read(
        self, start: int = 1, *, follow: bool = False, batch: int = 1_000
    ) -> AsyncGenerator[list[StoredEvent], None]:
        self.tries += 1
        if follow and self.lost:
            raise BrokerUnavailable("the server is silent")
        async with contextlib.aclosing(super().read(start, follow=follow, batch=batch)) as reading:
            async for events in reading:
                yield events


@asynccontextmanager
async def projected(log: Unreadable) -> AsyncIterator[Projector]:
    """A view that follows this log."""
    view = View(Instance(open_view(None)))
    projector = Projector(log, view)
    folding = asyncio.create_task(projector.run())
    try:
        yield projector
    finally:
        folding.cancel()
        await asyncio.gather(folding, return_exceptions=True)
        projector.close()
        view.close()


async def test_a_view_that_has_all_of_the_log_is_well_once_that_can_be_read_though_nothing_comes() -> None:
    log = Unreadable()
    async with projected(log) as projector:
        await comes_true(lambda: projector.trouble is not None)
        log.lost = False
        await comes_true(lambda: projector.trouble is None)


async def test_a_view_that_lacks_an_event_is_in_trouble_until_it_has_it() -> None:
    log = Unreadable()
    await log.append(saved("waiting"))
    async with projected(log) as projector:
        await comes_true(lambda: log.tries > 3)
        assert projector.trouble is not None
        log.lost = False
        await comes_true(lambda: projector.trouble is None)


class Idle:
    """A delivery of a log to which nothing comes, interrupted as by a restart of the server."""

    def __init__(self, *_: object, **__: object) -> None:
        self.alive = False

    async def begin(self, _end: int | None) -> None:
        """Begin."""

    async def take(self) -> list[StoredEvent]:
        await asyncio.sleep(0.01)  # so that it lasts longer than the patience of the test
        self.alive = True
        raise Interrupted("the connection was lost")

    async def end(self) -> None:
        """End."""


async def test_interruptions_of_a_reader_that_was_well_between_them_are_no_long_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = []

    async def head(*_: object) -> tuple[int, JsonObject]:
        begun.append(1)
        return 0, {}

    monkeypatch.setattr(reader, "Delivery", Idle)
    monkeypatch.setattr(reader, "_head_after", head)
    monkeypatch.setattr(reader, "PATIENCE", 0.001)
    nobody = cast(BrokerConnection, None)
    reading = asyncio.ensure_future(anext(reader.read_stream(nobody, "LEDGER", 1, follow=True, batch=1)))
    await comes_true(lambda: len(begun) > 5 or reading.done())
    assert not reading.done()
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)

"""Comparison of a restore: the stream is read back right behind what is published, and each event compared.

All that a leaf is made of is compared, and the position: so the stream's chain is the backup's.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager

from kledger.contract.errors import BrokerUnavailable, RestoreRefused
from ledger.backup.refill.streaming import NotTaken
from ledger.broker.access import BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.event import StoredEvent
from ledger.progress import Progress
from ledger.store.reader import read_stream

_READ_EVENTS = 1_000
_BACK_SECONDS = 5.0

Lists = asyncio.Queue[list[StoredEvent]]
"""Events of the backup that are published, or were there, and not compared yet; after the last an empty list."""


async def hand_over(read: Lists, events: list[StoredEvent], comparing: asyncio.Future[None]) -> None:
    """Have these events compared, once those before are; not where comparing has failed."""
    if read.full():
        putting = asyncio.ensure_future(read.put(events))
        await asyncio.wait((putting, comparing), return_when=asyncio.FIRST_COMPLETED)
        putting.cancel()
    else:
        read.put_nowait(events)


class Done:
    """Counts what was published and what was compared, and tells both as one number."""

    def __init__(self, position: int, reached: int, started: float, progress: Progress) -> None:
        self._reached, self._total = reached, 2 * position - reached
        self._started, self._progress = started, progress
        self._sent, self._compared = reached, 0

    def sent_to(self, position: int) -> None:
        self._sent = position
        self._tell()

    def compared_to(self, position: int) -> None:
        self._compared = position
        self._tell()

    def _tell(self) -> None:
        done = self._sent - self._reached + self._compared
        self._progress(done, self._total, done / max(time.monotonic() - self._started, 1e-9))


@asynccontextmanager
async def compared(
    access: BrokerAccess,
    stream: str,
    last: int,
    read: Lists,
    done: Done,
    ends: Callable[[], Awaitable[None]] | None = None,
) -> AsyncIterator[asyncio.Task[None]]:
    """A task that reads the stream back right behind the publishing, on a connection of its own; see _read_back.

    Where `ends` returns before, it raises NotTaken.
    """
    connection = await BrokerConnection.open(access, "admin", name="kledger-compare")
    reading = _read_back(connection, stream, last, read, done)
    task = asyncio.ensure_future(reading if ends is None else _unless(ends(), reading))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await closed(connection)


async def closed(connection: BrokerConnection) -> None:
    """Close a connection; where the broker has just ended, once it is back: the library leaves open what it opens."""
    with contextlib.suppress(BrokerUnavailable):
        await connection.until_connected(_BACK_SECONDS)
    await connection.close()


async def _unless(ends: Awaitable[None], reading: Coroutine[None, None, None]) -> None:
    tasks = asyncio.ensure_future(reading), asyncio.ensure_future(ends)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done():
                task.result()
        if not tasks[0].done():
            raise NotTaken("the broker stores nothing more")
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _read_back(connection: BrokerConnection, stream: str, last: int, read: Lists, done: Done) -> None:
    """Read the stream up to position `last`, and compare each event with what was read in the backup.

    All that a leaf is made of is compared, and the position: so the stream's chain is the backup's. Raises
    RestoreRefused.
    """
    position, kept, at = 0, list[StoredEvent](), 0
    reading = read_stream(connection, stream, 1, follow=True, batch=_READ_EVENTS, restored=lambda _config: last)
    async with contextlib.aclosing(reading) as batches:
        while position < last:
            events = await anext(batches)
            while len(kept) - at < len(events) and (following := await read.get()):
                kept, at = kept[at:] + following, 0
            backed_up = kept[at : at + len(events)]
            if events != backed_up:
                pairs = itertools.zip_longest(events, backed_up)
                other = next(each for each, (there, here) in enumerate(pairs) if there != here)
                raise RestoreRefused(
                    f"position {events[other].position} of the stream {stream} does not hold the backup's event: "
                    "somebody else wrote there. Start over with --start-over, while nothing writes"
                )
            at += len(events)
            position = events[-1].position
            done.compared_to(position)

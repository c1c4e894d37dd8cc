"""Decoding ahead: the first two of the three stages of catching up, reading and decoding, each with its own thread.

What is in the archive is read there, decoded; the log is read for the rest, and for segments that are not believed.
Events that were read while the other stages were busy form one batch, up to a limit: large batches need fewer
statements an event. Towards the end the batches get smaller, so that all stages stay busy.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import structlog

from ledger.archive.segments import Segment
from ledger.event import StoredEvent, size_of
from ledger.privacy.keyring import Keyring
from ledger.store.parked import NONE_PARKED, Parked
from ledger.stream import Log, event_at
from projections.archive.reading import Archive
from projections.engine.predecode import Ahead, decode_ahead
from projections.fold_kit.parser import Parser

log = structlog.get_logger(__name__)

# Events in one read; reads ahead; the most events and bytes in a batch.
_LIST = 12_288
_LISTS_AHEAD = 3
_BATCH = 49_152
_BATCH_BYTES = 64 * 1024 * 1024
# Towards the end a batch is half of what is left, down to this.
_LAST_BATCHES = 24_576

Lists = asyncio.Queue[list[StoredEvent] | Exception | None]
"""Lists of events that are read ahead, then None, or the error that ended the reading."""


class Batches:
    """The batches of a part of the log, one of which is decoded while another one is folded."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Ahead | Exception | None] = asyncio.Queue(1)

    async def next(self) -> Ahead | None:
        """The next batch; None after the last. Raises what ended the reading or the decoding."""
        batch = await self._queue.get()
        self._queue.task_done()
        if isinstance(batch, Exception):
            raise batch
        return batch

    async def taken(self) -> None:
        """Wait until every batch was taken: only then the next one is decoded, as each takes some 50 MB."""
        await self._queue.join()

    async def put(self, batch: Ahead | Exception | None) -> None:
        """Append a batch, once there is room for it; None at the end."""
        await self._queue.put(batch)


@asynccontextmanager
async def decoded_ahead(
    ledger: Log,
    keyring: Keyring,
    part: Segment,
    parked: Parked = NONE_PARKED,
    *,
    archive: Archive | None = None,
) -> AsyncIterator[Batches]:
    """The batches of a part of the log, of which the first is being decoded. What is in `archive` is read there.

    Raises BrokerUnavailable, LogGap; `Batches.next` raises them too, and what the vault raises.
    """
    batches, loop = Batches(), asyncio.get_running_loop()
    if archive is not None and (archive.there.last < part.first or not await _is_of(archive, ledger, part.last)):
        archive = None
    with ThreadPoolExecutor(1, "view-decoder") as decoder, contextlib.closing(Parser()) as parser:

        async def from_archive(part: Segment) -> bool:
            assert archive is not None  # _next_part found the part in it
            await batches.taken()
            decoded = await loop.run_in_executor(decoder, archive.decoded, parser, keyring, part, parked)
            if decoded is not None:
                await batches.put(decoded)
            return decoded is not None

        async def from_log(part: Segment) -> None:
            async with _reading(ledger, part) as lists:
                while events := await _gathered(lists, part.last):
                    await batches.taken()
                    await batches.put(
                        await loop.run_in_executor(decoder, decode_ahead, parser, keyring, events, parked)
                    )

        async def decoding_on() -> None:
            try:
                at = part.first
                while at <= part.last:
                    piece, archived = _next_part(archive, at, part.last)
                    if not archived or not await from_archive(piece):
                        await from_log(piece)
                    at = piece.last + 1
            except Exception as error:  # raised again where the batch would have been folded
                await batches.put(error)
            else:
                await batches.put(None)

        decoding = asyncio.create_task(decoding_on())
        try:
            await asyncio.sleep(0)  # it has begun, even where the loop is kept busy now
            yield batches
        finally:
            decoding.cancel()
            await asyncio.gather(decoding, return_exceptions=True)
            # A thread may be waiting for the vault, which answers on this loop: do not block it.
            await asyncio.to_thread(decoder.shutdown)


def _next_part(archive: Archive | None, at: int, to: int) -> tuple[Segment, bool]:
    """The next events to read, from position `at` on, and whether they are in the archive."""
    segment = archive.there.at(at) if archive is not None else None
    if segment is None or segment.first > to:
        return Segment(at, to), False
    if segment.first > at:
        return Segment(at, segment.first - 1), False
    return Segment(at, min(segment.last, to)), True


async def _is_of(archive: Archive, ledger: Log, to: int) -> bool:
    """Whether the archive is one of this log: it has the last event that is in both.

    Raises BrokerUnavailable, LogGap.
    """
    if not (last := min(archive.there.last, to)):
        return False
    event = await event_at(ledger, last)
    if event is None or archive.there.is_of(event):
        return event is not None
    log.warning(
        "the archive is not read: the chain has no leaf, or another one, of the event where it ends", position=last
    )
    return False


@asynccontextmanager
async def _reading(ledger: Log, part: Segment) -> AsyncIterator[Lists]:
    """The events of a part of the log, read ahead."""
    lists: Lists = asyncio.Queue(_LISTS_AHEAD)
    reading = asyncio.create_task(_read_ahead(ledger, part.first, part.last, lists))
    try:
        yield lists
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def _read_ahead(ledger: Log, start: int, to: int, lists: Lists) -> None:
    """Put events up to position `to` into the queue, then None; or the error that ended the reading."""
    try:
        async with contextlib.aclosing(ledger.read(start, batch=_LIST)) as batches:
            async for events in batches:
                await lists.put([event for event in events if event.position <= to])
                if events[-1].position >= to:
                    break
    except Exception as error:  # raised again where the batch would have been decoded
        await lists.put(error)
    else:
        await lists.put(None)


async def _gathered(lists: Lists, to: int) -> list[StoredEvent]:
    """All events that are in the queue, as one batch; an empty list at the end. Raises what ended the reading."""
    events: list[StoredEvent] = []
    size = 0
    while not events or not lists.empty():
        read = await lists.get()
        if isinstance(read, Exception):
            raise read
        if not read:
            if events:
                lists.put_nowait(None)  # the end mark again, for the next call
            break
        events += read
        size += size_of(read)
        limit = min(_BATCH, max(_LAST_BATCHES, (to - events[0].position) // 2))
        if len(events) + _LIST > limit or size > _BATCH_BYTES:
            break
    return events

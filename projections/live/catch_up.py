"""Catch-up: a pipeline of three stages (read, decode, fold), each with its own thread, for a long piece of the log.

Events that were read while the other stages were busy form one batch, up to a limit: large batches need fewer
statements an event. Towards the end the batches get smaller, so that all stages stay busy.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from kledger.contract.errors import LedgerError
from ledger.event import StoredEvent
from ledger.store.parked import NONE_PARKED, Parked
from ledger.stream import Ledger
from projections.engine.batch import Folded
from projections.engine.predecode import Ahead, decode_ahead, fold_ahead
from projections.engine.view import View
from projections.fold_kit.parser import Parser

# Events in one read; reads ahead; the most events and bytes in a batch.
_LIST = 12_288
_LISTS_AHEAD = 3
_BATCH = 49_152
_BATCH_BYTES = 64 * 1024 * 1024
# Towards the end a batch is half of what is left, down to this.
_LAST_BATCHES = 24_576


async def catch_up(
    ledger: Ledger,
    view: View,
    to: int,
    progress: Callable[[int, float], None] = lambda _position, _rate: None,
    parked: Parked = NONE_PARKED,
    *,
    checkpoint_every: int | None = None,
) -> int:
    """Fold everything up to position `to` and stop there; returns how many events were refused.

    `progress` is called with the position and the rate in events a second. A CHECKPOINT of the file is done after every
    `checkpoint_every` events; the file must have no readers then. Raises LogGap, BrokerUnavailable, and UnfoldableEvent
    for an event that cannot be folded and is not in `parked`.
    """
    started, first, refused = time.monotonic(), view.position, 0
    checkpointed = first
    bench, loop = view.instance.bench, asyncio.get_running_loop()
    lists: asyncio.Queue[list[StoredEvent] | LedgerError | None] = asyncio.Queue(_LISTS_AHEAD)
    batches: asyncio.Queue[Ahead | Exception | None] = asyncio.Queue(1)  # decoded while another one is folded
    with (
        ThreadPoolExecutor(1, "view-writer") as writer,
        ThreadPoolExecutor(1, "view-decoder") as decoder,
        contextlib.closing(Parser()) as parser,
    ):

        async def decoding_on() -> None:
            try:
                while events := await _gathered(lists, to):
                    await batches.put(
                        await loop.run_in_executor(decoder, decode_ahead, parser, bench.keyring, events, parked)
                    )
            except Exception as error:  # raised again where the batch would have been folded
                await batches.put(error)
            else:
                await batches.put(None)

        reading = asyncio.create_task(_read_ahead(ledger, first + 1, to, lists))
        decoding = asyncio.create_task(decoding_on())
        try:
            while (decoded := await batches.get()) is not None:
                if isinstance(decoded, Exception):
                    raise decoded
                folded: Folded = await loop.run_in_executor(writer, fold_ahead, bench, decoded, parked)
                view.instance.position = folded.position
                refused += folded.refused
                if checkpoint_every is not None and to > folded.position >= checkpointed + checkpoint_every:
                    checkpointed = folded.position
                    await loop.run_in_executor(writer, bench.run, "CHECKPOINT")
                progress(folded.position, (folded.position - first) / max(time.monotonic() - started, 1e-9))
        finally:
            for task in (reading, decoding):
                task.cancel()
            await asyncio.gather(reading, decoding, return_exceptions=True)
            # A thread may be waiting for the vault, which answers on this loop: do not block it.
            await asyncio.to_thread(decoder.shutdown)
            await asyncio.to_thread(writer.shutdown)
    return refused


async def _read_ahead(
    ledger: Ledger, start: int, to: int, lists: asyncio.Queue[list[StoredEvent] | LedgerError | None]
) -> None:
    """Put events up to position `to` into the queue, then None; or the error that ended the reading."""
    try:
        async with contextlib.aclosing(ledger.read(start, batch=_LIST)) as batches:
            async for events in batches:
                await lists.put([event for event in events if event.position <= to])
                if events[-1].position >= to:
                    break
    except LedgerError as error:
        await lists.put(error)
    else:
        await lists.put(None)


async def _gathered(lists: asyncio.Queue[list[StoredEvent] | LedgerError | None], to: int) -> list[StoredEvent]:
    """All events that are in the queue, as one batch; an empty list at the end. Raises what ended the reading."""
    events: list[StoredEvent] = []
    size = 0
    while not events or not lists.empty():
        read = await lists.get()
        if isinstance(read, LedgerError):
            raise read
        if not read:
            if events:
                lists.put_nowait(None)  # the end mark again, for the next call
            break
        events += read
        size += sum(len(event.body) for event in read)
        limit = min(_BATCH, max(_LAST_BATCHES, (to - events[0].position) // 2))
        if len(events) + _LIST > limit or size > _BATCH_BYTES:
            break
    return events

"""How does the log reach the views? The one loop: read from checkpoint + 1, fold, move the checkpoint, go on.

The same loop runs live and when catching up; a rebuild is the same loop over an empty file. It stops where
positions are missing (fails closed) and says so; any other trouble is tried again with growing pauses.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager

import duckdb
import structlog

from ledger.errors import BrokerUnavailable, LedgerError, LogGap, UnfoldableEvent
from ledger.event import StoredEvent
from ledger.parked import NONE_PARKED, Parked, ParkedEvents
from ledger.stream import Ledger
from projections.batch import SMALL, Folded
from projections.parking import fold_strictly, park
from projections.view import Instance, View

log = structlog.get_logger(__name__)

# A list of events to fold at once. Larger ones plan fewer statements an event and take more memory.
BATCH = 10_000
# Explicit checkpoints bound the write-ahead log, which is read again when a node starts.
CHECKPOINT_EVERY_EVENTS = 200_000
_LONGEST_PAUSE = 5.0
# What nobody waits for may rest for so long, so that several events are folded at once.
_GATHER_SECONDS = 0.1
# While somebody waits and events come faster than they are folded, folding rests for as long as it worked, up to this.
_BREATH_SECONDS = 0.02


class Projector:
    """Keeps a view at the head of the log."""

    def __init__(self, ledger: Ledger, view: View, parked: ParkedEvents | None = None) -> None:
        self._ledger = ledger
        self._view = view
        self._parked = parked
        self._writer = ThreadPoolExecutor(1, "view-writer")
        self._turn = asyncio.Lock()
        self._since_checkpoint = 0
        self.trouble: LedgerError | None = None
        """Why the view does not move at present; None while it does."""

    async def run(self) -> None:
        """Fold until cancelled. A gap in the log ends the folding, not the node: reads go on."""
        pause = 0.05
        while True:
            position = self._view.position
            try:
                async with contextlib.aclosing(self._ledger.read(position + 1, follow=True, batch=BATCH)) as batches:
                    async for events in batches:
                        began = time.monotonic()
                        await self._fold(events)
                        self.trouble, pause = None, 0.05
                        await self._rest(len(events), time.monotonic() - began)
            except LogGap as gap:
                self.trouble = gap
                log.error("folding stops: positions are missing", error=gap.message)
                return
            except Exception as error:  # whatever it is, the node says what folding waits for
                self.trouble = await self._parked_or_trouble(position, error)
                if self.trouble is None:
                    continue
                kind = log.warning if isinstance(error, BrokerUnavailable) else log.error
                kind("folding pauses", error=str(error), position=self._view.position, pause=pause)
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    async def _parked_or_trouble(self, position: int, error: Exception) -> LedgerError | None:
        """None when the event that could not be folded is parked now, so that the rest goes on."""
        if isinstance(error, UnfoldableEvent) and self._parked is not None:
            try:
                return await park(self._parked, error)
            except LedgerError as hindered:
                return hindered
        return error if isinstance(error, LedgerError) else _unfoldable(position, error)

    async def _fold(self, events: list[StoredEvent]) -> None:
        async with self._turn:
            instance = self._view.instance
            loop = asyncio.get_running_loop()
            folded = await loop.run_in_executor(
                self._writer,
                fold_strictly,
                instance.bench,
                events,
                self._parked.parked if self._parked else NONE_PARKED,
            )
            instance.position, instance.stored_us = folded.position, events[-1].stored_ns // 1000
            self._since_checkpoint += len(events)
            await self._view.moved()
            if self._since_checkpoint >= CHECKPOINT_EVERY_EVENTS:
                await self._checkpoint(instance)

    async def _checkpoint(self, instance: Instance) -> None:
        """Shorten the write-ahead log; an analyst's question under way puts it off until after the next batch."""
        try:
            await asyncio.get_running_loop().run_in_executor(self._writer, instance.con.execute, "CHECKPOINT")
        except duckdb.Error as error:
            log.info("the checkpoint of the view file is put off", error=str(error))
        else:
            self._since_checkpoint = 0

    async def _rest(self, folded: int, seconds: float) -> None:
        """Let events gather: a fold of one costs nearly as much as one of ten. Whoever waits is not kept waiting."""
        if folded > SMALL:
            return  # catching up: the next events are there already
        if folded > 1:
            await asyncio.sleep(min(seconds, _BREATH_SECONDS))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GATHER_SECONDS):
                await self._view.awaited.wait()

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """Hold the view where it is for as long as the body runs; reads go on."""
        async with self._turn:
            yield

    def close(self) -> None:
        """Wait for the batch under way."""
        self._writer.shutdown(wait=True)


async def catch_up(
    ledger: Ledger,
    view: View,
    to: int,
    progress: Callable[[int, float], None] = lambda _position, _rate: None,
    parked: Parked = NONE_PARKED,
) -> int:
    """Fold everything up to position `to`, without following on; returns how many events were refused.

    Reading and folding overlap. `progress` gets the position and the rate in events a second. Raises LogGap,
    BrokerUnavailable, and UnfoldableEvent: only what is `parked` already is passed over.
    """
    started, first, refused = time.monotonic(), view.position, 0
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(1, "view-writer") as writer:
        under_way: asyncio.Future[Folded] | None = None
        async with contextlib.aclosing(ledger.read(first + 1, batch=BATCH)) as batches:
            async for read in batches:
                events = [event for event in read if event.position <= to]
                if under_way is not None:
                    refused += _moved_on(view, await under_way, started, first, progress)
                    under_way = None
                if events:
                    under_way = loop.run_in_executor(writer, fold_strictly, view.instance.bench, events, parked)
                if len(events) < len(read):
                    break
        if under_way is not None:
            refused += _moved_on(view, await under_way, started, first, progress)
    return refused


def _moved_on(view: View, folded: Folded, started: float, first: int, progress: Callable[[int, float], None]) -> int:
    view.instance.position = folded.position
    progress(folded.position, (folded.position - first) / max(time.monotonic() - started, 1e-9))
    return folded.refused


def _unfoldable(position: int, error: Exception) -> LedgerError:
    return LedgerError(f"the view cannot fold what follows position {position}: {error}")

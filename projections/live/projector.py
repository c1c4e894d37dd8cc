"""How does the log reach the views? The one loop: read from checkpoint + 1, fold, move the checkpoint, go on.

The same loop runs live and when catching up; a rebuild is the same loop over an empty file. It stops where
positions are missing (fails closed) and says so; any other trouble is tried again with growing pauses.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import duckdb
import structlog

from kledger.contract.errors import LedgerError, LogGap, LogReplaced, UnfoldableEvent
from ledger.event import StoredEvent
from ledger.runtime.log_once import Outage
from ledger.store.parked import NONE_PARKED, Parked, ParkedEvents
from ledger.stream import Ledger
from projections.engine.batch import SMALL, Folded
from projections.engine.parking import fold_strictly, park
from projections.engine.parser import Parser
from projections.engine.predecode import decode_ahead, fold_ahead, together
from projections.engine.same_log import check_same_log
from projections.fold_kit.workbench import Workbench
from projections.live.gathering import Arriving, Batch, gathered
from projections.live.view import Instance, View

T = TypeVar("T")

log = structlog.get_logger(__name__)

# A list of events to fold at once. Larger ones plan fewer statements an event and take more memory.
BATCH = 10_000
# Explicit checkpoints bound the write-ahead log, which is read again when a node starts.
CHECKPOINT_EVERY_EVENTS = 200_000
_LONGEST_PAUSE = 5.0
# What nobody waits for may rest for so long, so that several events are folded at once.
_REST_SECONDS = 0.1
# While somebody waits and events come faster than they are folded, folding rests for as long as it worked, up to this.
_BREATH_SECONDS = 0.008


class Projector:
    """Keeps a view at the head of the log."""

    def __init__(self, ledger: Ledger, view: View, parked: ParkedEvents | None = None) -> None:
        self._ledger = ledger
        self._view = view
        self._parked = parked
        self._writer = ThreadPoolExecutor(1, "view-writer")
        self._turn = asyncio.Lock()
        self._parser = Parser()
        self._pauses = 0
        self._since_checkpoint = 0
        self._outage = Outage("folding pauses", "folding goes on", log)
        self.trouble: LedgerError | None = None
        """Why the view does not move at present; None while it does."""
        self.folded: Callable[[list[StoredEvent], float], None] = lambda _events, _seconds: None
        """Told of each batch once it can be read, and how many seconds that took."""
        self.reopen: Callable[[], Awaitable[None]] | None = None
        """Serves the view from a file that works, where DuckDB has given up the one that is open."""

    async def run(self) -> None:
        """Fold until cancelled. A gap in the log, or another log, ends the folding, not the node: reads go on."""
        pause = 0.05
        while True:
            try:
                await check_same_log(self._ledger, self._view)
                reading = self._ledger.read(self._view.position + 1, follow=True, batch=BATCH)
                async with contextlib.aclosing(Arriving(reading, BATCH)) as arriving:
                    while True:
                        batch = await gathered(arriving, self._view, BATCH, self._decode)
                        began = time.monotonic()
                        await self._fold(batch)
                        self.trouble, pause = None, 0.05
                        self._outage.over(position=self._view.position)
                        seconds = time.monotonic() - began
                        self.folded(batch.events, seconds)
                        await self._rest(len(batch.events), seconds)
            except (LogGap, LogReplaced) as gap:
                self.trouble = gap
                log.error("folding stops: positions are missing or other ones", error=gap.message)
                return
            except Exception as error:  # whatever it is, the node says what folding waits for
                self.trouble = await self._mended_or_trouble(self._view.position, error)
                if self.trouble is None:
                    continue
                self._outage.met(self.trouble.message, position=self._view.position, cause=repr(error)[:500])
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    async def _mended_or_trouble(self, position: int, error: Exception) -> LedgerError | None:
        """None when folding may go on at once: the file is opened again, or the event is parked."""
        if not isinstance(error, duckdb.FatalException) or self.reopen is None:
            return await self._parked_or_trouble(position, error)
        async with self._turn:
            try:
                await self.reopen()
            except (duckdb.Error, LedgerError, OSError) as hindered:
                return _unfoldable(position, hindered)
        return None

    async def _parked_or_trouble(self, position: int, error: Exception) -> LedgerError | None:
        """None when the event that could not be folded is parked now, so that the rest goes on."""
        if isinstance(error, UnfoldableEvent) and self._parked is not None:
            try:
                return await park(self._parked, error)
            except LedgerError as hindered:
                return hindered
        return error if isinstance(error, LedgerError) else _unfoldable(position, error)

    async def _decode(self, batch: Batch) -> None:
        """Decode what came of a batch that still grows."""
        if batch.decoded_with != (now := self._decoding_with()):
            batch.undecoded()
            batch.decoded_with = now
        rest, batch.rest = batch.rest, []
        keyring = self._view.instance.bench.keyring
        batch.pieces.append(await self._written(decode_ahead, self._parser, keyring, rest, self._held_apart()))

    async def _fold(self, batch: Batch) -> None:
        async with self._turn:
            instance, parked = self._view.instance, self._held_apart()
            if batch.decoded_with != self._decoding_with():
                batch.undecoded()
            if batch.pieces:
                folded = await self._written(self._fold_pieces, instance.bench, batch, parked)
            else:
                folded = await self._written(fold_strictly, instance.bench, batch.events, parked)
            instance.folded(folded.position, batch.events)
            self._since_checkpoint += len(batch.events)
            await self._view.moved()
            if self._since_checkpoint >= CHECKPOINT_EVERY_EVENTS:
                await self._checkpoint(instance)

    def _fold_pieces(self, bench: Workbench, batch: Batch, parked: Parked) -> Folded:
        pieces = batch.pieces
        if batch.rest:
            pieces.append(decode_ahead(self._parser, bench.keyring, batch.rest, parked))
        return fold_ahead(bench, together(self._parser, pieces), parked)

    async def _written(self, work: Callable[..., T], *arguments: Any) -> T:
        """What some work gives, done by the one thread that decodes and folds."""
        return await asyncio.get_running_loop().run_in_executor(self._writer, work, *arguments)

    def _held_apart(self) -> Parked:
        return self._parked.parked if self._parked else NONE_PARKED

    def _decoding_with(self) -> tuple[int, Parked]:
        """What decoding depends on beside the events: which are parked, and, from pause to pause, who is forgotten."""
        return self._pauses, self._held_apart()

    async def _checkpoint(self, instance: Instance) -> None:
        """Shorten the write-ahead log; an analyst's question under way puts it off until after the next batch."""
        try:
            await self._written(instance.con.execute, "CHECKPOINT")
        except duckdb.FatalException:  # the file is given up: it is opened again at once, not when somebody writes
            raise
        except duckdb.Error as error:
            log.info("the checkpoint of the view file is put off", error=str(error))
        else:
            self._since_checkpoint = 0

    async def _rest(self, folded: int, seconds: float) -> None:
        """Let events gather: a fold of one costs nearly as much as one of ten. Whoever waits is not kept waiting."""
        if folded > SMALL:
            return  # more of it gathers while it is read
        if folded > 1:
            await asyncio.sleep(min(seconds, _BREATH_SECONDS))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_REST_SECONDS):
                await self._view.awaited.wait()

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """Hold the view where it is for as long as the body runs; reads go on."""
        async with self._turn:
            self._pauses += 1
            try:
                yield
            finally:
                self._pauses += 1

    def close(self) -> None:
        """Wait for the batch under way."""
        self._writer.shutdown(wait=True)
        self._parser.close()


def _unfoldable(position: int, error: Exception) -> LedgerError:
    return LedgerError(f"the view cannot fold what follows position {position}: {error}")

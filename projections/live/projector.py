"""Projector: the loop that keeps the views at the head of the log. It reads from checkpoint + 1, folds, and goes on.

Each fold moves the checkpoint in its own transaction. The loop stops where positions are missing (it fails closed) and
reports it; after any other error it retries with growing pauses.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeVar

import duckdb
import structlog

from kledger.contract.errors import LedgerError, LogGap, LogReplaced, UnfoldableEvent
from ledger.event import StoredEvent
from ledger.runtime.damaged_file import is_damaged
from ledger.runtime.log_once import Outage
from ledger.store.parked import NONE_PARKED, Parked, ParkedEvents
from ledger.stream import Ledger
from projections.archive.reading import Archive
from projections.engine.batch import SMALL, Folded
from projections.engine.parking import fold_strictly, park
from projections.engine.predecode import decode_ahead, fold_ahead, together
from projections.engine.same_log import check_same_log
from projections.engine.view import Instance, View
from projections.fold_kit.identities import Identities
from projections.fold_kit.lacking_memory import with_memory
from projections.fold_kit.parser import Parser
from projections.fold_kit.workbench import Workbench
from projections.live.catch_up import catch_up
from projections.live.gathering import Arriving, Batch, gathered
from projections.live.more_memory import lacks_memory

T = TypeVar("T")

log = structlog.get_logger(__name__)

# Events in a batch. Larger batches need fewer statements an event, and more memory.
BATCH = 10_000
# Explicit checkpoints bound the write-ahead log, which is read again when a node starts.
CHECKPOINT_EVERY_EVENTS = 200_000
_LONGEST_PAUSE = 5.0
# The longest delay of events that no reader waits for, so that several are folded at once.
_REST_SECONDS = 0.1
# While readers wait and events come faster than they are folded: pause for as long as the last fold took, up to this.
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
        self._pauses = 0  # begun and ended ones: odd during one
        self._since_checkpoint = 0
        self._outage = Outage("folding pauses", "folding goes on", log)
        self.trouble: LedgerError | None = None
        """Why the view does not move at present; None while it does."""
        self.folded: Callable[[list[StoredEvent], float], None] = lambda _events, _seconds: None
        """Called with each batch after it is folded, and with the seconds that this took."""
        self.archive: Callable[[], Archive | None] = lambda: None
        """Opens the archive: what it has of the log is read there while the view is far behind."""
        self.reopen: Callable[[], Awaitable[None]] | None = None
        """Called where DuckDB has invalidated the open file; has to serve the view from a working one."""
        self.more_memory: Callable[[], bool] = lambda: False
        """Called where a fold lacks memory in a view that was just opened: whether it has more once opened again."""
        self._given_up: Instance | None = None
        self._alone: Instance | None = None
        """A view that was opened again as a fold lacked memory, and has folded nothing since: it is without statements
        of analysts."""
        self._arriving: Arriving | None = None
        view.gave_up = self._gave_up

    async def run(self) -> None:
        """Fold until cancelled. A gap in the log, or another log, stops the folding until the view is made anew;
        the node goes on serving reads.
        """
        pause = 0.05
        while True:
            begun_with = self._view.instance
            try:
                if self._given_up is self._view.instance:  # it could not be opened again; it would not answer either
                    raise duckdb.FatalException("the view's file was given up")
                await check_same_log(self._ledger, self._view)
                await with_memory(self._read_archive)
                if self.trouble is not None and (await self._ledger.head()).position <= self._view.position:
                    self._well()  # nothing is left to fold, which would show it
                reading = self._ledger.read(self._view.position + 1, follow=True, batch=BATCH)
                self._view.ahead.begin(self._view.position)
                async with contextlib.aclosing(Arriving(reading, BATCH, self._look)) as arriving:
                    self._arriving = arriving
                    while True:
                        batch = await gathered(arriving, self._view, BATCH, self._decode)
                        began = time.monotonic()
                        await with_memory(partial(self._fold, batch))
                        pause = 0.05
                        self._well()
                        seconds = time.monotonic() - began
                        self.folded(batch.events, seconds)
                        await self._rest(len(batch.events), seconds)
            except (LogGap, LogReplaced) as gap:
                self.trouble = gap
                log.error("folding stops: positions are missing or other ones", error=gap.message)
                await self._view.until(partial(self._is_another_than, begun_with))
                self.trouble, pause = None, 0.05
                log.info("folding goes on with a view that was made anew", position=self._view.position)
            except Exception as error:  # any error is reported in the node's status, and retried
                self.trouble = await self._recover(self._view.position, error)
                if self.trouble is None:
                    continue
                self._outage.met(self.trouble.message, position=self._view.position, cause=repr(error)[:500])
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)

    def _well(self) -> None:
        self.trouble = self._alone = None
        self._outage.over(position=self._view.position)

    def _is_another_than(self, instance: Instance) -> bool:
        return self._view.instance is not instance

    def _gave_up(self, instance: Instance, error: Exception) -> None:
        """Have the file opened again though no event comes: without an answer of the view nobody appends one."""
        if instance is self._view.instance:
            self._given_up = instance
            if self._arriving is not None:
                self._arriving.end(error)

    def _look(self, events: list[StoredEvent]) -> None:
        """Note what has arrived, for reads that need not wait for its fold; nothing is sure during a pause."""
        view, paused = self._view, self._pauses % 2
        known = None if paused else view.instance.bench.identities
        view.ahead.arrived(events, view.position, known, self._parked_now())

    async def _read_archive(self) -> None:
        """Fold what is in the archive and not in the view, in steps. Raises what catch_up raises."""
        archive = await asyncio.to_thread(self.archive)
        while archive is not None and self._view.position < archive.there.last:
            async with self._turn:
                instance = self._view.instance
                to = min(archive.there.last, instance.position + CHECKPOINT_EVERY_EVENTS)
                try:
                    await catch_up(self._ledger, self._view, to, parked=self._parked_now(), archive=archive)
                finally:
                    instance.caught_up()
                    await self._view.moved()
                log.info("the view is folded from the archive", position=instance.position, read=archive.events)
                self._since_checkpoint += CHECKPOINT_EVERY_EVENTS
                await self._checkpoint(instance)

    async def _recover(self, position: int, error: Exception) -> LedgerError | None:
        """Reopen the file or park the event. None when folding may go on at once, else the error to report."""
        instance = self._view.instance
        if is_damaged(error):
            instance.note_damage(error)
        lacking = lacks_memory(error)
        alone = instance is self._alone  # else an analyst's statement may have taken the memory: it ends with the file
        more = lacking and alone and self.more_memory()
        # Where a commit lacks memory, what it began is left behind in the open file.
        broken = isinstance(error, duckdb.FatalException) or (
            lacking and isinstance(error, duckdb.TransactionException)
        )
        again = more or broken or (lacking and not alone) or instance is self._given_up
        if not again or self.reopen is None:
            return await self._park_or_report(position, error)
        async with self._turn:
            try:
                if instance is self._view.instance:  # no rebuild has replaced it meanwhile
                    await self.reopen()
                self._given_up = None
                self._alone = self._view.instance if lacking else None
            except (duckdb.Error, LedgerError, OSError) as failure:
                return _unfoldable(position, failure)
        return _unfoldable(position, error) if lacking and alone and not more else None

    async def _park_or_report(self, position: int, error: Exception) -> LedgerError | None:
        """None when the event that could not be folded is parked, else the error to report."""
        if isinstance(error, UnfoldableEvent) and self._parked is not None:
            try:
                return await park(self._parked, error)
            except LedgerError as failure:
                return failure
        return error if isinstance(error, LedgerError) else _unfoldable(position, error)

    async def _decode(self, batch: Batch) -> None:
        """Decode the new events of a batch that is still growing."""
        if batch.decoded_with != (now := self._decoding_with()):
            batch.undecoded()
            batch.decoded_with = now
        rest, batch.rest = batch.rest, []
        keyring = self._view.instance.bench.keyring
        batch.pieces.append(await self._in_writer(decode_ahead, self._parser, keyring, rest, self._parked_now()))

    async def _fold(self, batch: Batch) -> None:
        async with self._turn:
            instance, parked = self._view.instance, self._parked_now()
            if batch.decoded_with != self._decoding_with():
                batch.undecoded()
            fold = self._fold_pieces if batch.pieces else self._fold_events
            folded = await self._in_writer(fold, instance.bench, batch, parked)
            instance.folded(folded.position, batch.events)
            self._since_checkpoint += len(batch.events)
            await self._view.moved()
            if self._since_checkpoint >= CHECKPOINT_EVERY_EVENTS:
                await self._checkpoint(instance)

    def _fold_events(self, bench: Workbench, batch: Batch, parked: Parked) -> Folded:
        return _followed(bench, fold_strictly(bench, batch.events, parked))

    def _fold_pieces(self, bench: Workbench, batch: Batch, parked: Parked) -> Folded:
        pieces = batch.pieces
        if batch.rest:
            pieces.append(decode_ahead(self._parser, bench.keyring, batch.rest, parked))
            batch.rest = []  # the fold may be tried again
        return _followed(bench, fold_ahead(bench, together(pieces), parked))

    async def _in_writer(self, work: Callable[..., T], *arguments: Any) -> T:
        """Run `work` on the one thread that decodes and folds, and return its result."""
        return await asyncio.get_running_loop().run_in_executor(self._writer, work, *arguments)

    def _parked_now(self) -> Parked:
        return self._parked.parked if self._parked else NONE_PARKED

    def _decoding_with(self) -> tuple[int, Parked]:
        """What a decoded piece depends on: the parked events and, as erasing pauses the projector, the pauses."""
        return self._pauses, self._parked_now()

    async def _checkpoint(self, instance: Instance) -> None:
        """Shorten the write-ahead log; deferred to the next batch while a query of an analyst runs."""
        try:
            await self._in_writer(instance.con.execute, "CHECKPOINT")
        except duckdb.FatalException:  # DuckDB has invalidated the file: reopen it now, not at the next write
            raise
        except duckdb.Error as error:
            log.info("the checkpoint of the view file is put off", error=str(error))
        else:
            self._since_checkpoint = 0

    async def _rest(self, folded: int, seconds: float) -> None:
        """Let events collect, as a fold of one costs nearly as much as one of ten; ends once a reader waits."""
        if folded > SMALL:
            return  # a bulk write: its next events collect while they are read
        if folded > 1:
            await asyncio.sleep(min(seconds, _BREATH_SECONDS))
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_REST_SECONDS):
                await self._view.awaited.wait()

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """Pause folding while the body runs; reads go on."""
        async with self._turn:
            self._pauses += 1
            self._view.ahead.unsure()
            try:
                yield
            finally:
                self._pauses += 1
                self._view.ahead.unsure()

    def close(self) -> None:
        """Wait for the batch under way."""
        self._writer.shutdown(wait=True)
        self._parser.close()


def _followed(bench: Workbench, folded: Folded) -> Folded:
    """Keep in mind which ids the view has: a live view is asked for new ones again and again."""
    if bench.identities is None:
        bench.identities = Identities()
    bench.identities.follow(bench.con, folded.position)
    return folded


def _unfoldable(position: int, error: Exception) -> LedgerError:
    return LedgerError(f"the view cannot fold what follows position {position}: {error}")

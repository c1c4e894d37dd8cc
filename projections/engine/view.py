"""Live view: one DuckDB file with one writer and many readers.

A rebuilt file replaces the live one without refusing a read: running queries end on the old file, new ones go to the
new file, and the old one is closed after its last reader.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import structlog

from kledger.contract.errors import ServiceFailed, ViewBehind
from ledger.event import JsonObject, StoredEvent
from ledger.privacy.keyring import Keyring
from ledger.runtime.damaged_file import damaged_mark, is_damaged
from ledger.runtime.no_room import no_room
from ledger.wire.subjects import entity_of
from projections.engine.ahead.between import UNTOUCHED, Ahead, Untouched
from projections.engine.ahead.made_rows import MadeRows
from projections.engine.ahead.new_in_list import NewItems
from projections.engine.duckdb import checkpoint_of
from projections.engine.threads.own_threads import within
from projections.engine.threads.turns import Turns
from projections.fold_kit.lacking_memory import with_memory
from projections.fold_kit.workbench import Workbench

log = structlog.get_logger(__name__)

T = TypeVar("T")

_CLOSES_WITHIN_SECONDS = 3.0
# How long the event at a position may be on its way, before the read that names it asks for a fold.
_ARRIVES_WITHIN_SECONDS = 0.05

DAMAGED = (
    "the view's file is damaged, as of its disk: kledger rebuild makes it anew from the log, as does the next start of "
    "the node"
)
READERS = max(2, os.cpu_count() or 2)
"""Concurrent queries. More of them than cores only compete for the interpreter's lock."""


class Instance:
    """One open view file. Folding happens on `bench`, in one thread; each query has a cursor of its own."""

    def __init__(
        self, con: duckdb.DuckDBPyConnection, path: Path | None = None, keyring: Keyring | None = None
    ) -> None:
        self.con = con
        self.path = path
        self.bench = Workbench(con, keyring)
        self.position, self.stored_us = checkpoint_of(con)
        self.items_position = 0
        """Position of the last batch with an event about an item; 0 when there was none since the file was opened."""
        self.damage = ""
        """What DuckDB says of a block of the file that it cannot read; empty while it found none."""
        self._users = 0
        self._leaving: Callable[[], None] | None = None

    def note_damage(self, error: Exception) -> None:
        """Record that a block of the file cannot be read, so that the next start makes it anew, and not this one."""
        if self.damage:
            return
        self.damage = str(error)
        log.error("the view's file is damaged", file=str(self.path), error=self.damage)
        if self.path is not None:
            with contextlib.suppress(OSError):
                damaged_mark(self.path).touch(0o600)

    def refuse_damaged(self, error: Exception) -> None:
        """Record what a question met, where that is a damaged block, and raise ServiceFailed; else return."""
        if is_damaged(error):
            self.note_damage(error)
            raise ServiceFailed(DAMAGED) from error

    def answer(self, question: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run `question(cursor, …)` on this thread and return its result.

        The cursor is closed afterwards: a result that was not read to its end would keep a transaction open, and with
        it every row replaced since, so that no checkpoint would be possible.
        """
        with contextlib.closing(self.con.cursor()) as cursor:
            return question(cursor, *args, **kwargs)

    def folded(self, position: int, events: Sequence[StoredEvent]) -> None:
        """Record that these events are folded into the file, up to this position."""
        self.position, self.stored_us = position, events[-1].stored_ns // 1000
        if any(entity_of(event.subject) == "knowledge" for event in events):
            self.items_position = position

    def caught_up(self) -> None:
        """Record what was folded by catching up, from the file itself."""
        self.position, self.stored_us = checkpoint_of(self.con)
        self.items_position = self.position

    def close(self) -> None:
        """Close the file."""
        self.bench.close()

    @property
    def in_use(self) -> bool:
        """Whether a query is running."""
        return self._users > 0

    def enter(self) -> None:
        self._users += 1

    def leave(self) -> None:
        self._users -= 1
        if not self._users and self._leaving is not None:
            self._leaving()

    def close_when_unused(self, then: Callable[[], None] = lambda: None) -> None:
        """Close the file once no query runs on it; then call `then`."""

        def close() -> None:
            self.close()
            then()

        if self._users:
            self._leaving = close
        else:
            close()


class View:
    """The live view of a node. Its methods belong to one event loop."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._moved = asyncio.Condition()
        self.shown = 0
        """An item was shown as of this position before it was folded; no later read is to be older."""
        self._awaited: list[int] = []
        self.awaited = asyncio.Event()
        """Set while a reader waits for a position."""
        self.ahead = Ahead()
        """What has arrived of the log and is not folded."""
        self.gave_up: Callable[[Instance, Exception], None] = lambda _instance, _error: None
        """Called where a question finds its file invalidated by DuckDB: nothing may be folded that would find it."""
        self._made = MadeRows()
        self._executor = ThreadPoolExecutor(READERS, "view-reader")
        self._turns = Turns(READERS)

    @property
    def position(self) -> int:
        """The log position up to which the view is folded; 0 before the first event."""
        return self.instance.position

    @property
    def items_position(self) -> int:
        """Where items last changed, as far as the open file knows; 0 where they did not since it was opened."""
        return self.instance.items_position

    @property
    def next_awaited(self) -> int | None:
        """The lowest position that a reader waits for; None when there is none."""
        return min(self._awaited, default=None)

    async def ask(self, question: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run `question(cursor, *args, **kwargs)` on a reader thread, when it is its asker's turn; returns its result.

        Retried for a while where an analyst's statement has used up the memory that all queries share, or while a file
        that DuckDB has invalidated is opened again. Raises ServiceFailed when that lasts.
        """

        async def once() -> T:
            await self._turns.come()
            instance = self.instance
            try:
                running = self._executor.submit(instance.answer, question, *args, **kwargs)
            except RuntimeError:  # the view was closed meanwhile
                self._turns.end()
                raise
            instance.enter()
            try:
                return await asyncio.wrap_future(running)
            except duckdb.FatalException as error:
                self.gave_up(instance, error)
                raise
            except duckdb.IOException as error:
                instance.refuse_damaged(error)
                raise
            finally:
                if running.done():
                    self._answered(instance)
                else:  # nobody waits for it any more, and its thread and its file are taken until it ends
                    loop = asyncio.get_running_loop()
                    running.add_done_callback(lambda _: self._answered_from(loop, instance))

        lacking = (duckdb.OutOfMemoryException, duckdb.FatalException)
        try:
            return await with_memory(once, lacking)
        except lacking as error:
            if (full := no_room(error)) is not None:
                raise full from error
            raise ServiceFailed(
                "the view cannot answer: analysts' statements have taken its memory, or its file is opened "
                "again: try again, and see kledger status"
            ) from error

    def _answered(self, instance: Instance) -> None:
        instance.leave()
        self._turns.end()

    def _answered_from(self, loop: asyncio.AbstractEventLoop, instance: Instance) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop has ended
            loop.call_soon_threadsafe(self._answered, instance)

    async def wait_for(self, position: int, timeout: float = 10.0) -> None:
        """Return once `position` is folded. Raises ViewBehind after `timeout` seconds."""
        if self.position >= position:
            return
        self._awaited.append(position)
        self.awaited.set()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self.until(lambda: self.position >= position)
        finally:
            self._awaited.remove(position)
            if not self._awaited:
                self.awaited.clear()
        if self.position < position:
            raise ViewBehind(
                f"the view is at position {self.position}, {position} was asked for and did not come within "
                f"{timeout:g} s: try again, or see what kledger status says of the lag",
                position=self.position,
            )

    async def item_ahead(self, org: str, item_id: str, position: int, within: float) -> JsonObject | Untouched | None:
        """What a read of one item at a position, within so many seconds, need not wait for the fold for.

        The row of an item (ITEM_COLUMNS) that was saved and not changed since; UNTOUCHED where the view has the item as
        it is at that position; None where the fold has to be waited for.
        """
        if self.position >= position:
            return UNTOUCHED
        await self.ahead.until(position, min(within, _ARRIVES_WITHIN_SECONDS))
        folded = self.position
        found: StoredEvent | JsonObject | Untouched | None = self.ahead.of(org, item_id, position, folded)
        if isinstance(found, StoredEvent):
            rows = self._rows([found], folded)
            found = None if rows is None else rows[0]
        return found

    async def items_ahead(self, org: str, position: int, within: float) -> NewItems | None:
        """What a list at a position, within so many seconds, has beside what the view has.

        None where the fold has to be waited for.
        """
        await self.ahead.until(position, min(within, _ARRIVES_WITHIN_SECONDS))
        folded = self.position
        saves = self.ahead.saves(org, position, folded)
        rows = None if saves is None else self._rows(saves.events, folded)
        return None if saves is None or rows is None else NewItems(rows, folded, self.ahead.upto, saves.recalled)

    def _rows(self, saves: Sequence[StoredEvent], folded: int) -> list[JsonObject] | None:
        return self._made.rows_of(self.instance.con, self.instance.bench.keyring, saves, folded)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return once `holds()` is true; it is called after each fold and each swap."""
        async with self._moved:
            await self._moved.wait_for(holds)

    async def moved(self) -> None:
        """Wake all waiters."""
        async with self._moved:
            self._moved.notify_all()

    async def swap(self, instance: Instance, then: Callable[[], None] = lambda: None) -> None:
        """Serve another file; the old one is closed after its last reader, then `then` is called."""
        old, self.instance = self.instance, instance
        old.close_when_unused(then)
        await self.moved()

    def close(self) -> None:
        """Let running queries end, then close the file.

        An analyst's statement that does not end keeps the file open: then it is left as after a kill -9.
        """
        self._executor.shutdown(wait=True)
        if not self.instance.in_use:
            self.instance.close()
        elif not within(_CLOSES_WITHIN_SECONDS, self.instance.close, "view-close"):
            log.warning("the view's file stays open, a statement has not ended", file=str(self.instance.path))

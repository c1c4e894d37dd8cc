"""What does the node know now, and how is it asked? The live view: one file, one writer, many readers.

A rebuilt file takes the place of the live one without refusing a read: questions that are under way end on the
old file, new ones go to the new file, and the old one is closed when its last reader is done.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import duckdb
import structlog

from kledger.contract.errors import ServiceFailed, ViewBehind
from ledger.event import StoredEvent
from ledger.privacy.keyring import Keyring
from ledger.wire.subjects import entity_of
from projections.fold_kit.workbench import Workbench
from projections.live.duckdb import checkpoint_of
from projections.live.own_threads import within

log = structlog.get_logger(__name__)

T = TypeVar("T")

_CLOSES_WITHIN_SECONDS = 3.0
_ANSWERS_WITHIN_SECONDS = 10.0
_ASKS_AGAIN_SECONDS = 0.05

READERS = max(2, os.cpu_count() or 2)
"""Questions answered at a time: more of them than cores only take the interpreter's lock from each other."""


class Instance:
    """One open view file. Folding happens on `bench`, in one thread; questions have cursors of their own."""

    def __init__(
        self, con: duckdb.DuckDBPyConnection, path: Path | None = None, keyring: Keyring | None = None
    ) -> None:
        self.con = con
        self.path = path
        self.bench = Workbench(con, keyring)
        self.position, self.stored_us = checkpoint_of(con)
        self.items_position = 0
        """No event about an item was folded after this position; 0 when none was since the file was opened."""
        self._users = 0
        self._leaving: Callable[[], None] | None = None

    def answer(self, question: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """What `question(cursor, …)` returns, on this thread.

        The cursor is the question's own and is closed after it: a result that was not read to its end keeps a
        transaction open, and with it every row that was replaced since; nothing could be checkpointed.
        """
        with contextlib.closing(self.con.cursor()) as cursor:
            return question(cursor, *args, **kwargs)

    def folded(self, position: int, events: Sequence[StoredEvent]) -> None:
        """These events are in the file now, up to this position."""
        self.position, self.stored_us = position, events[-1].stored_ns // 1000
        if any(entity_of(event.subject) == "knowledge" for event in events):
            self.items_position = position

    def close(self) -> None:
        """Close the file."""
        self.bench.close()

    @property
    def in_use(self) -> bool:
        """Whether a question is under way."""
        return self._users > 0

    def enter(self) -> None:
        self._users += 1

    def leave(self) -> None:
        self._users -= 1
        if not self._users and self._leaving is not None:
            self._leaving()

    def close_when_unused(self, then: Callable[[], None] = lambda: None) -> None:
        """Close the file once no question is under way on it; then call `then`."""

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
        self._awaited: list[int] = []
        self.awaited = asyncio.Event()
        """Set while somebody waits for a position."""
        self._executor = ThreadPoolExecutor(READERS, "view-reader")

    @property
    def position(self) -> int:
        """The log position that is folded in; 0 before the first event."""
        return self.instance.position

    @property
    def next_awaited(self) -> int | None:
        """The lowest position that somebody waits for; None when nobody waits."""
        return min(self._awaited, default=None)

    async def ask(self, question: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        """Run `question(cursor, *args, **kwargs)` on a reader thread and return what it returns.

        Where an analyst's statement has taken the memory that all questions share, or DuckDB has given up the file and
        it is opened again, it is asked again for a while. Raises ServiceFailed when that lasts.
        """
        loop = asyncio.get_running_loop()
        give_up = loop.time() + _ANSWERS_WITHIN_SECONDS
        while True:
            instance = self.instance
            instance.enter()
            try:
                answer = partial(instance.answer, question, *args, **kwargs)
                return await loop.run_in_executor(self._executor, answer)
            except (duckdb.OutOfMemoryException, duckdb.FatalException) as error:
                if loop.time() > give_up:
                    raise ServiceFailed(
                        "the view cannot answer: analysts' statements have taken its memory, or its file is opened "
                        "again: try again, and see kledger status"
                    ) from error
            finally:
                instance.leave()
            await asyncio.sleep(_ASKS_AGAIN_SECONDS)

    async def wait_for(self, position: int, timeout: float = 10.0) -> None:
        """Return once `position` is folded in. Raises ViewBehind after `timeout` seconds."""
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

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return once `holds()`, asked each time that something moved."""
        async with self._moved:
            await self._moved.wait_for(holds)

    async def moved(self) -> None:
        """Wake those who wait for a position."""
        async with self._moved:
            self._moved.notify_all()

    async def swap(self, instance: Instance, then: Callable[[], None] = lambda: None) -> None:
        """Serve another file from now on; the old one is closed after its last reader, then `then` is called."""
        old, self.instance = self.instance, instance
        old.close_when_unused(then)
        await self.moved()

    def close(self) -> None:
        """Let questions under way end, then close the file.

        A statement of an analyst that does not end keeps it open: then it is left as a kill -9 would leave it.
        """
        self._executor.shutdown(wait=True)
        if not self.instance.in_use:
            self.instance.close()
        elif not within(_CLOSES_WITHIN_SECONDS, self.instance.close, "view-close"):
            log.warning("the view's file stays open, a statement has not ended", file=str(self.instance.path))

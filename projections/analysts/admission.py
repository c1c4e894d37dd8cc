"""Admission control for analysts' statements over HTTP: limits how many run, and answers every caller in time.

DuckDB checks for an interrupt only between two steps, so a statement may run on after its timeout. Its caller then gets
an error; the statement keeps its slot until it ends, so that no more statements run than there are slots.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from kledger.contract.errors import IllegalQuery
from projections.engine.threads.own_threads import OwnThread

AT_ONCE = 2
WAITS_SECONDS = 5.0
"""The longest wait for a slot; with the timeout of a statement it is less than the 30 s that clients wait."""
_MORE_SECONDS = 2.0  # to process the interrupt, and to convert the rows of a statement that ended in time


class Places:
    """The slots for analysts' statements of one node. Its methods belong to one event loop."""

    def __init__(self, at_once: int = AT_ONCE, waits_seconds: float = WAITS_SECONDS) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._waits_seconds = waits_seconds

    async def run(self, work: Callable[[], Any], seconds: float, ended: Callable[[], None]) -> Any:
        """Run `work` in a thread of its own and return its result; `ended` is called when that thread ends.

        Raises what `work` raises, and IllegalQuery where no slot becomes free or `work` goes on after `seconds`.
        """
        try:
            async with asyncio.timeout(self._waits_seconds):
                await self._free.acquire()
        except BaseException as error:
            ended()
            if isinstance(error, TimeoutError):
                raise IllegalQuery("other queries are running, and this one found no place: try again") from error
            raise
        loop = asyncio.get_running_loop()
        outcome: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()

        def finish(result: Any, error: BaseException | None) -> None:
            self._free.release()
            ended()
            if not outcome.done():
                outcome.set_result((result, error))

        def in_thread() -> None:
            result, failed = None, None
            try:
                result = work()
            except BaseException as error:
                failed = error
            with contextlib.suppress(RuntimeError):  # the loop is closed: the node has stopped
                loop.call_soon_threadsafe(finish, result, failed)

        OwnThread(in_thread, "analysts-statement").start()
        done, _ = await asyncio.wait([outcome], timeout=seconds + _MORE_SECONDS)
        if not done:
            raise IllegalQuery(
                f"the query took longer than {seconds:g} seconds and cannot be stopped within one step of it; it keeps "
                "its place until it ends: make smaller values, or run it on a snapshot file"
            )
        result, failed = outcome.result()
        if failed is not None:
            raise failed
        return result

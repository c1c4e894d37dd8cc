"""Runs coroutines for callers that do not await: on an event loop, on a thread of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any

from kledger.client.transport.exchange import R


class Portal:
    """An event loop on a thread of its own, started with the first call (so it works inside a running loop too)."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = 0  # the one that runs it: another one that was forked from it has no such thread
        self._starting = threading.Lock()

    def __reduce__(self) -> tuple[type[Portal], tuple[()]]:
        """A copy, and one in another process, has a loop and a thread of its own."""
        return Portal, ()

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run `work` to its end and return what it returns; an interrupt cancels it."""
        with self._starting:  # what is handed to the loop before it is told to stop is done before it does
            future = asyncio.run_coroutine_threadsafe(work, self._running())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None or self._process != os.getpid():
            self._loop, self._process = asyncio.new_event_loop(), os.getpid()
            threading.Thread(target=_run_and_close, args=(self._loop,), daemon=True, name="kledger-client").start()
        return self._loop

    def close(self) -> None:
        """Stop the loop once what other threads wait for is done; a later call starts a new one."""
        with self._starting:
            loop, self._loop = self._loop, None
            if loop is not None and self._process == os.getpid():
                loop.call_soon_threadsafe(loop.stop)


def _run_and_close(loop: asyncio.AbstractEventLoop) -> None:
    try:
        loop.run_forever()
        while under_way := asyncio.all_tasks(loop):
            loop.run_until_complete(asyncio.wait(under_way))
    finally:
        loop.close()

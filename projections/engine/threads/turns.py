"""Turns of the few threads that read for everybody: who asks much keeps nobody else waiting.

As many questions run at once as there are threads. Those that wait come one asker after another, each asker's own in
their order: another's question waits for those that run, and for one of each of the others, however many they have.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable
from contextvars import ContextVar

_asker: ContextVar[Hashable] = ContextVar("asker", default=None)


def asks(asker: Hashable) -> None:
    """Let what this task and its child tasks ask from now on count as this asker's; otherwise it is the node's own."""
    _asker.set(asker)


class Turns:
    """So many turns at once; of one event loop."""

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._waiting: dict[Hashable, deque[asyncio.Future[None]]] = {}
        """Who waits, by asker; whose turn is next is the first."""

    async def come(self) -> None:
        """Return when it is this task's turn, which lasts until `end` is called once."""
        if self._free:
            self._free -= 1
            return
        mine = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(self.asker(), deque()).append(mine)
        try:
            await mine
        except asyncio.CancelledError:
            if not mine.cancelled():  # it came in the same moment
                self.end()
            raise

    @staticmethod
    def asker() -> Hashable:
        """Whom this task asks for; None for the node's own questions."""
        return _asker.get()

    def end(self) -> None:
        """Give a turn back: to whoever is next."""
        while self._waiting:
            asker = next(iter(self._waiting))
            line = self._waiting.pop(asker)
            mine = line.popleft()
            if line:
                self._waiting[asker] = line  # behind the others
            if not mine.done():  # else it waits no longer
                mine.set_result(None)
                return
        self._free += 1

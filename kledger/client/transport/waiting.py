"""Runs coroutines for callers that do not await: on their own thread, which waits."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from kledger.client.transport.exchange import R


class OnTheCallersThread:
    """Runs what only ever waits in a SocketTransport: there is nothing that an event loop could do meanwhile."""

    def run(self, work: Coroutine[Any, Any, R]) -> R:
        """Run `work` to its end and return what it returns."""
        try:
            work.send(None)
        except StopIteration as end:
            result: R = end.value
            return result
        work.close()
        raise RuntimeError("this waits for an event loop, which a client over sockets has not")

    def close(self) -> None:
        """Nothing is kept."""

"""Searches of the vector process: none lacks what an earlier one had, also where the process was started again."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Protocol

from kledger.contract.errors import ViewBehind
from projections.engine.view import View
from projections.vectors.client import Answer, VectorClient
from projections.vectors.errors import VectorProcessGone
from projections.vectors.question import Searched
from projections.vectors.store.port import SearchOptions
from projections.vectors.wire import Paths

_RESTART_PATIENCE = 10.0
# What the process has not answered by then it does not answer: it hangs, or its disk does.
_ANSWER_PATIENCE = 20.0


class Searchable(Protocol):
    """The process of a feed, while it runs, and the position that it has applied."""

    applied: int

    @property
    def running(self) -> VectorClient | None: ...


class Searches:
    """Sends searches to the process, and remembers how far they have seen.

    A process that was started again may have lost what was not durable: until it has been fed that again, an answer
    would lack results that earlier ones had.
    """

    def __init__(self, feed: Searchable, view: View) -> None:
        self._feed = feed
        self._view = view
        self._seen = 0
        self._sent = 0  # last position of the changes being sent: searches may have seen some of them

    def will_see(self, upto: int) -> None:
        """Changes up to this position are being sent."""
        self._sent = upto

    def see(self, applied: int) -> None:
        """The process has applied this position."""
        self._seen = max(self._seen, applied)

    def lose(self) -> None:
        """The process has ended; the next one is at an earlier position."""
        self.see(self._sent)

    def see_another(self, applied: int) -> None:
        """A process that was made from the view at this position took over: it lacks nothing."""
        self._seen, self._sent = min(self._seen, applied), min(self._sent, applied)

    async def answer(
        self, query: Searched, options: SearchOptions, paths: Paths, meanwhile: Callable[[], object] | None = None
    ) -> Answer:
        """See VectorClient.answer; waits up to a limit while the process restarts.

        Raises ViewBehind when that takes too long, or the process does not answer.
        """
        failed: VectorClient | None = None
        while True:
            client = await self._until_whole(failed)
            try:
                async with asyncio.timeout(_ANSWER_PATIENCE):
                    return await client.answer(query, options, paths, meanwhile)
            except VectorProcessGone:
                if failed is not None:
                    raise
                failed = client
            except TimeoutError as error:
                raise ViewBehind(
                    f"the vector process does not answer a search for {_ANSWER_PATIENCE:g} s: try again, or see what "
                    "kledger status says of it",
                    position=self._feed.applied,
                ) from error

    async def _until_whole(self, failed: VectorClient | None) -> VectorClient:
        """The process, once it is another one than `failed` and has everything that earlier searches saw."""

        def whole() -> VectorClient | None:
            running = self._feed.running
            return None if running is failed or self._feed.applied < self._seen else running

        if whole() is None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_RESTART_PATIENCE):
                    await self._view.until(lambda: whole() is not None)
        if (client := whole()) is None:
            raise ViewBehind(
                f"the vector process is started and is at position {self._feed.applied}, searches had "
                f"{self._seen}: try again, or see what kledger status says of the lag",
                position=self._feed.applied,
            )
        return client

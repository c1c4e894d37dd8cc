"""How does work in bulk leave room for others? In turns of milliseconds, and with rests while somebody searches.

A search takes its turn on the event loop several times: each turn of others that it waits for adds to it.
"""

from __future__ import annotations

import asyncio
import time

from producers.operations.publish import Tally

TURN_SECONDS = 0.005
"""How long work in bulk may hold the event loop."""
REST_FACTOR = 3.0
"""How long all work in bulk then rests, in units of that turn (what it waited for the broker counts), while somebody
searches. The rests of several follow one another: ten imports leave searches as much room as one."""
LONGEST_REST_SECONDS = 0.1
SEARCHED_RECENTLY_SECONDS = 1.0


class Turns:
    """The turns of one piece of work; the first begins now."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._began = time.perf_counter()

    async def when_due(self) -> None:
        """Give way if the turn has lasted long enough."""
        if time.perf_counter() - self._began > TURN_SECONDS:
            await self.give_way()

    async def give_way(self) -> None:
        """End this turn, and begin the next one after the others have had theirs."""
        worked, now = time.perf_counter() - self._began, time.monotonic()
        if now - self._tally.searched_at < SEARCHED_RECENTLY_SECONDS:
            rest = min(worked * REST_FACTOR, LONGEST_REST_SECONDS)
            self._tally.bulk_rests_until = max(self._tally.bulk_rests_until, now) + rest
        await asyncio.sleep(0)
        # All rest until the last rest is over: searches have long undisturbed stretches instead of short ones.
        while (left := self._tally.bulk_rests_until - time.monotonic()) > 0:  # noqa: ASYNC110  # others may prolong it
            await asyncio.sleep(left)
        self._began = time.perf_counter()

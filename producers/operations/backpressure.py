"""Backpressure for bulk work: short turns on the event loop, and pauses while somebody searches.

A search needs several turns of the event loop, and each turn of other work that it waits for adds to its latency.
Three other loops pause for reasons of their own: the projector, until a reader waits, so that events collect; the
vector process, until a search comes, which it serves first; the notary, while events come fast.
"""

from __future__ import annotations

import asyncio
import time

from producers.operations.publish import Tally

TURN_SECONDS = 0.005
"""How long bulk work may block the event loop."""
REST_FACTOR = 3.0
"""Length of the pause of all bulk work after a turn while somebody searches, as a multiple of that turn (time spent
waiting for the broker counts). Pauses of several imports add up: ten leave searches as much room as one."""
LONGEST_REST_SECONDS = 0.1
SEARCHED_RECENTLY_SECONDS = 1.0


class Turns:
    """The turns of one bulk job; the first begins now."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._began = time.perf_counter()

    async def when_due(self) -> None:
        """Yield if the turn has lasted long enough."""
        if time.perf_counter() - self._began > TURN_SECONDS:
            await self.give_way()

    async def give_way(self) -> None:
        """End this turn, yield to other tasks, and begin the next turn."""
        worked, now = time.perf_counter() - self._began, time.monotonic()
        if now - self._tally.searched_at < SEARCHED_RECENTLY_SECONDS:
            rest = min(worked * REST_FACTOR, LONGEST_REST_SECONDS)
            self._tally.bulk_rests_until = max(self._tally.bulk_rests_until, now) + rest
        await asyncio.sleep(0)
        # All bulk work pauses until the last pause ends: one long quiet period instead of several short ones.
        while (left := self._tally.bulk_rests_until - time.monotonic()) > 0:  # noqa: ASYNC110  # others may prolong it
            await asyncio.sleep(left)
        self._began = time.perf_counter()

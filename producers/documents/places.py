"""Places where files are read: a few at once, one of each caller, and a bounded queue before them."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kledger.contract.errors import RateLimited

AT_ONCE = 2
"""Files that are read at once, each in a process of its own."""
MOST_OF_ONE = 8
"""Files of one caller that are read or wait; others are refused, so that no caller takes the whole queue."""
MOST = 64
"""Files of all callers that are read or wait."""
AGAIN = 5.0
"""Seconds after which a refused caller is asked to come again."""


class Places:
    """Places for reading files. A caller's next file waits for the one before, and takes nobody else's place."""

    def __init__(self, at_once: int = AT_ONCE, most_of_one: int = MOST_OF_ONE, most: int = MOST) -> None:
        self._free = asyncio.Semaphore(at_once)
        self._most_of_one, self._most = most_of_one, most
        self._files: Counter[str] = Counter()
        self._turns: dict[str, asyncio.Lock] = {}

    @asynccontextmanager
    async def of(self, caller: str) -> AsyncIterator[None]:
        """Wait for a place, and hold it until the block ends. Raises RateLimited."""
        if self._files[caller] >= self._most_of_one or self._files.total() >= self._most:
            raise RateLimited(
                f"{self._files[caller]} files of {caller} and {self._files.total()} of all callers wait to be read: "
                f"send this one again in {AGAIN:g} s",
                retry_after=AGAIN,
            )
        self._files[caller] += 1
        turn = self._turns.setdefault(caller, asyncio.Lock())
        try:
            async with turn, self._free:
                yield
        finally:
            self._files[caller] -= 1
            if not self._files[caller]:
                del self._files[caller], self._turns[caller]

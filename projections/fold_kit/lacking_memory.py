"""Waiting for memory: work on the views is tried again where an analyst's statement has taken what all queries share.

Such a statement is stopped or ends within seconds, so what lacks memory for a moment is no trouble of the node.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import duckdb

TRIED_FOR_SECONDS = 10.0
_TRIED_AGAIN_SECONDS = 0.05

T = TypeVar("T")


async def with_memory(
    work: Callable[[], Awaitable[T]], lacking: tuple[type[duckdb.Error], ...] = (duckdb.OutOfMemoryException,)
) -> T:
    """The result of `work()`, which is called again where it raises one of `lacking`; raised when that lasts."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + TRIED_FOR_SECONDS
    while True:
        try:
            return await work()
        except lacking:
            if loop.time() > deadline:
                raise
        await asyncio.sleep(_TRIED_AGAIN_SECONDS)

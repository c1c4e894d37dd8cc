"""Reading ahead: the next list of events is read and prepared on a thread while the broker works on the last one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator
from typing import TypeVar

Taken = TypeVar("Taken")
Made = TypeVar("Made")


async def ahead(lists: Iterator[Taken], prepare: Callable[[Taken], Made]) -> AsyncGenerator[Made, None]:
    """What `prepare` makes of each list. Raises what both raise."""

    def take() -> Made | None:
        taken = next(lists, None)
        return None if taken is None else prepare(taken)

    following = asyncio.ensure_future(asyncio.to_thread(take))
    try:
        while (made := await following) is not None:
            following = asyncio.ensure_future(asyncio.to_thread(take))
            yield made
    finally:
        await asyncio.wait([following])  # a thread cannot be stopped
        if not following.cancelled():
            following.exception()  # it was raised, or nobody asks for it any more

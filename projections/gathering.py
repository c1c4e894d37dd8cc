"""What is folded at once, live? What came in bulk gathers for a moment, unless somebody waits for it.

An event or a few are folded as they come. More of them are the beginning of a piece of bulk: the rest is waited for,
for no longer than until everything is there that somebody waits for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from ledger.event import StoredEvent
from projections.ahead import Ahead
from projections.view import View

# More events than this are a piece of something larger: the server hands over a batch of a thousand in pieces.
A_FEW = 8
GATHER_SECONDS = 0.25
# So many are decoded while more comes.
DECODED_AT_ONCE = 2_000
# What somebody waits for and is not here yet is on its way, or does not exist yet: it is not waited for any longer.
ON_ITS_WAY_SECONDS = 0.05


@dataclass(slots=True)
class Batch:
    """Events to fold at once, as they were read; the first of them are decoded in `pieces`, the others in `rest`."""

    events: list[StoredEvent]
    pieces: list[Ahead] = field(default_factory=list)
    rest: list[StoredEvent] = field(default_factory=list)
    decoded_with: object = None
    """What the pieces were decoded with: they are good for as long as that is the same."""

    def __post_init__(self) -> None:
        self.rest = list(self.events)

    @property
    def last(self) -> int:
        """The position of the last event."""
        return self.events[-1].position

    def add(self, events: list[StoredEvent]) -> None:
        """What comes next; what is here already is delivered again, and is left out."""
        fresh = [event for event in events if event.position > self.last]
        self.events += fresh
        self.rest += fresh

    def undecoded(self) -> None:
        """Forget the pieces."""
        self.pieces, self.rest = [], list(self.events)


class Lists:
    """The lists of a reading, one after the other; waiting for the next one can be given up and taken up again."""

    def __init__(self, reading: AsyncGenerator[list[StoredEvent], None]) -> None:
        self._reading = reading
        self._coming: asyncio.Future[list[StoredEvent]] | None = None

    async def next(self) -> list[StoredEvent]:
        """The next list. Raises what the reading raises, StopAsyncIteration at its end."""
        coming = self._next()
        await asyncio.wait([coming])
        self._coming = None
        return coming.result()

    async def come(self, within: float, unless: asyncio.Event | None = None) -> bool:
        """Whether the next list, or an error, is there before so many seconds are over or `unless` is set."""
        coming = self._next()
        given_up = None if unless is None else asyncio.ensure_future(unless.wait())
        either: list[asyncio.Future[Any]] = [coming] if given_up is None else [coming, given_up]
        await asyncio.wait(either, timeout=within, return_when=asyncio.FIRST_COMPLETED)
        if given_up is not None:
            given_up.cancel()
        return coming.done()

    @property
    def failed(self) -> bool:
        """Whether an error is what comes next."""
        return self._coming is not None and self._coming.done() and self._coming.exception() is not None

    def _next(self) -> asyncio.Future[list[StoredEvent]]:
        if self._coming is None:
            self._coming = asyncio.ensure_future(anext(self._reading))
        return self._coming

    async def aclose(self) -> None:
        """End the reading."""
        if self._coming is not None:
            self._coming.cancel()
            await asyncio.gather(self._coming, return_exceptions=True)
        await self._reading.aclose()


async def gathered(lists: Lists, view: View, most: int, decode: Callable[[Batch], Awaitable[None]]) -> Batch:
    """What is folded next, up to `most` events or a list more; `decode` is given it as it grows.

    Raises what the reading raises, once everything before that is folded.
    """
    batch = Batch(await lists.next())
    loop = asyncio.get_running_loop()
    until, awaited_until = loop.time() + GATHER_SECONDS, None
    while A_FEW < len(batch.events) < most:
        awaited = view.next_awaited
        if awaited is not None and awaited <= batch.last:
            break
        if len(batch.rest) >= DECODED_AT_ONCE:
            await decode(batch)
            continue
        now = loop.time()
        if awaited is None:
            left, unless = until - now, view.awaited
        else:
            awaited_until = awaited_until or now + ON_ITS_WAY_SECONDS
            left, unless = awaited_until - now, None
        if left <= 0:
            break
        if await lists.come(left, unless):
            if lists.failed:
                break
            batch.add(await lists.next())
    return batch

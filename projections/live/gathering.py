"""What is folded at once, live? What came in bulk gathers for a moment, unless somebody waits for it.

An event or a few are folded as they come. More of them are the beginning of a piece of bulk: the rest is waited for,
for no longer than until everything is there that somebody waits for.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field

from kledger.contract.errors import BrokerUnavailable
from ledger.event import StoredEvent
from projections.engine.predecode import Ahead
from projections.live.view import View

# More events than this are a piece of something larger: the server hands over a batch of a thousand in pieces.
A_FEW = 8
GATHER_SECONDS = 0.25
# So many are decoded while more comes.
DECODED_AT_ONCE = 2_000
# Large events fill the memory long before there are many of them.
MOST_BYTES = 32 * 1024 * 1024
# What somebody waits for and is not here yet is on its way, or does not exist yet: it is not waited for any longer.
ON_ITS_WAY_SECONDS = 0.05


@dataclass(slots=True)
class Batch:
    """Events to fold at once, as they were read; the first of them are decoded in `pieces`, the others in `rest`."""

    events: list[StoredEvent]
    """The batch's own list: it grows."""
    pieces: list[Ahead] = field(default_factory=list)
    rest: list[StoredEvent] = field(default_factory=list)
    decoded_with: object = None
    """What the pieces were decoded with: they are good for as long as that is the same."""

    bytes: int = 0

    def __post_init__(self) -> None:
        self.rest, self.bytes = list(self.events), _bytes(self.events)

    @property
    def last(self) -> int:
        """The position of the last event."""
        return self.events[-1].position

    def add(self, events: list[StoredEvent]) -> None:
        """What comes next; what is here already is delivered again, and is left out."""
        fresh = [event for event in events if event.position > self.last]
        self.events += fresh
        self.rest += fresh
        self.bytes += _bytes(fresh)

    def undecoded(self) -> None:
        """Forget the pieces."""
        self.pieces, self.rest = [], list(self.events)


class Arriving:
    """What a reading gives, read on while earlier events are folded: up to `most` events or MOST_BYTES, and a list."""

    def __init__(self, reading: AsyncGenerator[list[StoredEvent], None], most: int) -> None:
        self._reading, self._most = reading, most
        self._lists: deque[list[StoredEvent]] = deque()
        self._events = self._bytes = 0
        self._ended: Exception | None = None
        self._came, self._room = asyncio.Event(), asyncio.Event()
        self._task = asyncio.create_task(self._read_on())

    async def next(self) -> list[StoredEvent]:
        """All that is here and follows on, once anything is. Raises what the reading raised, after what came before."""
        await self._came.wait()
        if not self._lists:
            assert self._ended is not None  # else nothing has come
            raise self._ended
        events = list(self._taken())
        while self._lists and self._lists[0][0].position <= events[-1].position + 1:
            last = events[-1].position
            events += [event for event in self._taken() if event.position > last]
        self._room.set()
        if not self._lists and self._ended is None:
            self._came.clear()
        return events

    def _taken(self) -> list[StoredEvent]:
        events = self._lists.popleft()
        self._events -= len(events)
        self._bytes -= _bytes(events)
        return events

    async def come(self, within: float, unless: asyncio.Event | None = None) -> bool:
        """Whether more events are here before so many seconds are over, or `unless` is set."""
        waited_for = [self._came] if unless is None else [self._came, unless]
        if not any(event.is_set() for event in waited_for):
            tasks = [asyncio.ensure_future(event.wait()) for event in waited_for]
            await asyncio.wait(tasks, timeout=within, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
        return bool(self._lists)

    @property
    def ended(self) -> bool:
        """Whether an error is all that comes."""
        return self._ended is not None and not self._lists

    async def aclose(self) -> None:
        """End the reading."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._reading.aclose()

    async def _read_on(self) -> None:
        try:
            async for events in self._reading:
                self._lists.append(events)
                self._events += len(events)
                self._bytes += _bytes(events)
                self._came.set()
                while self._events >= self._most or self._bytes >= MOST_BYTES:
                    self._room.clear()
                    await self._room.wait()
            self._ended = BrokerUnavailable("the reading of the log has ended")
        except Exception as error:  # whatever it is, it is raised where the events would have been
            self._ended = error
        self._came.set()


async def gathered(arriving: Arriving, view: View, most: int, decode: Callable[[Batch], Awaitable[None]]) -> Batch:
    """What is folded next, up to `most` events or MOST_BYTES, or a few more; `decode` is given it as it grows.

    Raises what the reading raises, once everything before that is folded.
    """
    batch = Batch(await arriving.next())
    loop = asyncio.get_running_loop()
    until, awaited_until = loop.time() + GATHER_SECONDS, None
    while A_FEW < len(batch.events) < most and batch.bytes < MOST_BYTES:
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
        if await arriving.come(left, unless):
            batch.add(await arriving.next())
        elif arriving.ended:
            break
    return batch


def _bytes(events: list[StoredEvent]) -> int:
    return sum(len(event.body) for event in events)

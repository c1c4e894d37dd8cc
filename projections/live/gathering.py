"""Batching of the live projector: bulk is collected for a moment, unless a reader waits for one of its positions.

A few events are folded as they arrive. More than a few are the beginning of a bulk write: the batch then grows while
more comes, as one fold of all costs less than two, but no longer than until it contains every position that a reader
waits for. Recalls are gathered too, however few: each search leaves one, and nobody but a later reader asks for it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field

from kledger.contract.errors import BrokerUnavailable
from ledger.event import StoredEvent, size_of
from ledger.events.recall import RecallServed
from ledger.wire.subjects import entity_of
from projections.engine.predecode import Ahead
from projections.engine.view import View

# More events than this are a part of a larger write: the server delivers a batch of a thousand in parts.
A_FEW = 8
# How long a batch waits for more after the last events of it came, and how long after the first ones.
GATHER_SECONDS = 0.25
LONGEST_SECONDS = 0.35
# How long recalls wait for each other while nothing else comes behind them, and how many are folded at once.
RECALLS_SECONDS = 5.0
MOST_RECALLS = 2_000
_RECALL = RecallServed.entity()
# A growing batch is decoded in pieces of this size while more events arrive.
DECODED_AT_ONCE = 2_000
# Large events fill the memory long before there are many of them.
MOST_BYTES = 32 * 1024 * 1024
# How long to wait for an awaited position that has not arrived: it may be in delivery, or not exist yet.
ON_ITS_WAY_SECONDS = 0.05


@dataclass(slots=True)
class Batch:
    """Events to fold at once. `pieces` are the decoded first ones; `rest` are those after them, not yet decoded."""

    events: list[StoredEvent]
    """The batch's own list: it grows."""
    pieces: list[Ahead] = field(default_factory=list)
    rest: list[StoredEvent] = field(default_factory=list)
    decoded_with: object = None
    """What the pieces were decoded with; they are invalid once that has changed."""

    bytes: int = 0
    others: int = 0
    """How many events are no recalls."""

    def __post_init__(self) -> None:
        self.rest, self.bytes, self.others = list(self.events), size_of(self.events), _others(self.events)

    @property
    def last(self) -> int:
        """The position of the last event."""
        return self.events[-1].position

    def add(self, events: list[StoredEvent]) -> None:
        """Append the next events; redelivered ones are dropped."""
        fresh = [event for event in events if event.position > self.last]
        self.events += fresh
        self.rest += fresh
        self.bytes += size_of(fresh)
        self.others += _others(fresh)

    @property
    def grows(self) -> bool:
        """Whether more may be folded together with it: recalls alone, or the beginning of a bulk write."""
        return self.others > A_FEW or (not self.others and len(self.events) < MOST_RECALLS)

    def undecoded(self) -> None:
        """Discard the decoded pieces: all events have to be decoded again."""
        self.pieces, self.rest = [], list(self.events)


class Arriving:
    """Read-ahead buffer over a reading of the log, filled while earlier events are folded.

    Backpressure: the reading stops at `most` events or MOST_BYTES, exceeded by one list at the most. `look` is called
    with each list as it comes.
    """

    def __init__(
        self,
        reading: AsyncGenerator[list[StoredEvent], None],
        most: int,
        look: Callable[[list[StoredEvent]], None] = lambda _events: None,
    ) -> None:
        self._reading, self._most, self._look = reading, most, look
        self._lists: deque[list[StoredEvent]] = deque()
        self._events = self._bytes = 0
        self._ended: Exception | None = None
        self._came, self._room, self._much = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._wanted = (1, 1)  # with so many events or bytes, there is much
        self._last_came = 0.0
        self._task = asyncio.create_task(self._read_on())

    async def next(self) -> list[StoredEvent]:
        """All buffered events that are consecutive; waits for the first. Raises the reading's error after the last."""
        await self._came.wait()
        if not self._lists:
            assert self._ended is not None  # _came is set by a list or by the end
            raise self._ended
        events = list(self._pop())
        while self._lists and self._lists[0][0].position <= events[-1].position + 1:
            last = events[-1].position
            events += [event for event in self._pop() if event.position > last]
        self._room.set()
        if not self._lists and self._ended is None:
            self._came.clear()
        return events

    def _pop(self) -> list[StoredEvent]:
        events = self._lists.popleft()
        self._events -= len(events)
        self._bytes -= size_of(events)
        return events

    async def come(self, within: float, unless: asyncio.Event | None = None, *, many: int = 1, size: int = 1) -> bool:
        """Wait up to `within` seconds for `many` more events or `size` bytes of them, or until `unless` is set.

        Whether there are any by then.
        """
        self._wanted = (many, size)
        if not self._is_much():
            self._much.clear()
        signals = [self._much] if unless is None else [self._much, unless]
        if within > 0 and not any(signal.is_set() for signal in signals):
            tasks = [asyncio.ensure_future(signal.wait()) for signal in signals]
            await asyncio.wait(tasks, timeout=within, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                task.cancel()
        return bool(self._lists)

    @property
    def ended(self) -> bool:
        """Whether the reading has failed and all its events were taken."""
        return self._ended is not None and not self._lists

    @property
    def last_came(self) -> float:
        """When the last events came, by the clock of the event loop."""
        return self._last_came

    def _is_much(self) -> bool:
        many, size = self._wanted
        return self._ended is not None or self._events >= many or self._bytes >= size

    def end(self, error: Exception) -> None:
        """Read no further: `next` raises the error behind what has come."""
        self._task.cancel()
        self._ended = error
        self._came.set()
        self._much.set()

    async def aclose(self) -> None:
        """End the reading."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        await self._reading.aclose()

    async def _read_on(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            async for events in self._reading:
                self._lists.append(events)
                self._events += len(events)
                self._bytes += size_of(events)
                self._last_came = loop.time()
                self._look(events)
                self._came.set()
                if self._is_much():
                    self._much.set()
                while self._events >= self._most or self._bytes >= MOST_BYTES:
                    self._room.clear()
                    await self._room.wait()
            self._ended = BrokerUnavailable("the reading of the log has ended")
        except Exception as error:  # raised again by `next`, after the events before it
            self._ended = error
        self._came.set()
        self._much.set()


async def gathered(arriving: Arriving, view: View, most: int, decode: Callable[[Batch], Awaitable[None]]) -> Batch:
    """The next batch to fold, of about `most` events or MOST_BYTES; `decode` is called with it as it grows.

    Raises what the reading raises, once everything before that was returned.
    """
    batch = Batch(await arriving.next())
    loop = asyncio.get_running_loop()
    came = began = loop.time()
    awaited_until: float | None = None
    while batch.grows and len(batch.events) < most and batch.bytes < MOST_BYTES:
        awaited = view.next_awaited
        if awaited is not None and awaited <= batch.last:
            break
        if len(batch.rest) >= DECODED_AT_ONCE:
            await decode(batch)
            continue
        now = loop.time()
        quiet, longest = (GATHER_SECONDS, LONGEST_SECONDS) if batch.others else (RECALLS_SECONDS, RECALLS_SECONDS)
        if now >= began + longest:
            break
        many = size = 1
        if awaited is None:
            until, unless = min(came + quiet, began + longest), view.awaited
            if batch.others > A_FEW:  # it grows whatever comes: to wake for each event took longer than to read it
                many = min(DECODED_AT_ONCE - len(batch.rest), most - len(batch.events))
                size = MOST_BYTES - batch.bytes
        else:
            until = awaited_until = awaited_until or now + ON_ITS_WAY_SECONDS
            unless = None
        # also what came while a piece was decoded, however long that took
        if await arriving.come(until - now, unless, many=many, size=size):
            batch.add(await arriving.next())
            came = arriving.last_came
        elif arriving.ended or loop.time() >= until:
            break
    return batch


def _others(events: list[StoredEvent]) -> int:
    return sum(entity_of(event.subject) != _RECALL for event in events)

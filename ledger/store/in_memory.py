"""In-memory ledger for tests and notebooks, with the same contract as JetStream (ledger/stream.py).

It dedupes event ids forever, the broker within two minutes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence

from kledger.contract.errors import BrokerUnavailable, LogGap
from ledger.broker.server_config import MAX_PAYLOAD_BYTES
from ledger.event import Appended, Head, NewEvent, StoredEvent
from ledger.store.atomic_batch import MAX_MESSAGES
from ledger.stream import Change, unchanged
from ledger.wire.publication import MSG_ID, Identity, Publication, conflict, identity, is_about, publications
from ledger.wire.subjects import history_filter


class MemoryLedger:
    """A ledger that lives as long as its process."""

    def __init__(self) -> None:
        self._events: list[StoredEvent] = []
        self._positions: dict[Identity, int] = {}
        self._last: dict[tuple[str, str, str], int] = {}
        self._waiting: set[asyncio.Future[None]] = set()
        self._closed = False

    async def append(self, event: NewEvent) -> Appended:
        return (await self.append_many([event]))[0]

    async def append_many(self, events: Sequence[NewEvent]) -> list[Appended]:
        return await self.append_changed(events, unchanged)

    async def append_changed(self, events: Sequence[NewEvent], change: Change) -> list[Appended]:
        if self._closed:
            raise BrokerUnavailable("this ledger is closed")
        result: list[Appended] = []
        for start in range(0, len(events), MAX_MESSAGES):
            messages = publications(await change(events[start : start + MAX_MESSAGES]), MAX_PAYLOAD_BYTES)
            self._check(messages)
            result.extend(self._store(message) for message in messages)
        waiting, self._waiting = self._waiting, set()
        for waiter in waiting:
            if not waiter.done():
                waiter.set_result(None)
        return result

    def _check(self, messages: list[Publication]) -> None:
        """Raise VersionConflict before any event of the batch is stored."""
        taken: set[tuple[str, str, str]] = set()
        ids: set[Identity] = set()
        for message in messages:
            event = message.event
            if (own := identity(event)) in self._positions or own in ids:
                continue
            about = is_about(event)
            if event.expects is not None:
                if about in taken:
                    raise conflict(event, None)
                if event.expects != self._last.get(about, 0):
                    raise conflict(event, self._last.get(about, 0))
            taken.add(about)
            ids.add(own)

    def _store(self, message: Publication) -> Appended:
        event = message.event
        if (own := identity(event)) in self._positions:
            return Appended(self._positions[own], event.id, duplicate=True)
        position = len(self._events) + 1
        before = self._events[-1].stored_ns if self._events else 0
        stored_ns = max(time.time_ns(), before)
        self._events.append(StoredEvent(position, stored_ns, message.subject, message.body, message.headers[MSG_ID]))
        self._positions[own] = position
        self._last[is_about(event)] = position
        return Appended(position, event.id)

    async def read(
        self,
        start: int = 1,
        *,
        follow: bool = False,
        batch: int = 1_000,
    ) -> AsyncGenerator[list[StoredEvent], None]:
        if batch < 1:
            raise ValueError(f"a list holds at least one event, not {batch}")
        position = max(1, start) - 1
        end = len(self._events)
        if position > end:
            raise LogGap(
                f"this ledger ends at position {end} and was to be read on after {position}: it is another one",
                first=end + 1,
                last=position,
            )
        while follow or position < end:
            until = len(self._events) if follow else end
            events = self._events[position : min(position + batch, until)]
            if events:
                position = events[-1].position
                yield events
                continue
            if self._closed:
                raise BrokerUnavailable("this ledger is closed")
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.add(waiter)
            try:
                await waiter
            finally:
                self._waiting.discard(waiter)

    async def head(self) -> Head:
        return Head(len(self._events), self._events[-1].stored_ns) if self._events else Head(0, 0)

    async def last_position_of(self, org: str, entity: str, entity_id: str) -> int:
        return self._last.get((org, entity, entity_id), 0)

    async def next_position_of(self, org: str, entity: str, entity_id: str, after: int) -> int:
        history = history_filter(org, entity, entity_id).removesuffix(">")
        later = (event.position for event in self._events[after:] if event.subject.startswith(history))
        return next(later, 0)

    async def close(self) -> None:
        self._closed = True
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)

"""Gathered recalls: a recall is appended shortly after its answer, many in one atomic batch.

Nobody waits for the event that records what a search served, so the answer leaves first and names it by its id. What
waits is bounded in time and in number. Whatever else the node appends stands behind it in the log: a verdict on what
was served, given after the answer, finds the recall. While recalls cannot be appended, an answer waits for its own.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from contextvars import Context
from dataclasses import dataclass, field

import structlog

from kledger.contract.errors import BrokerUnavailable, LedgerError
from ledger.event import Appended, Head, NewEvent, StoredEvent
from ledger.runtime.log_once import Outage
from ledger.stream import Ledger
from producers.operations.publish import Tally, publish_judged, refuse_unkeepable

log = structlog.get_logger(__name__)

GATHER_SECONDS = 0.25
"""The longest that a recall waits for others before it is appended: what `kill -9` can take."""
MOST_TOGETHER = 100
"""Recalls in one batch: with so many, nothing is waited for."""
MOST_WAITING = 1_000
"""Recalls that are not appended yet; with so many, an answer waits until there are fewer."""
FIRST_WITHIN_SECONDS = 2.0
"""The longest that what is appended later waits for recalls that the broker does not take."""
CLOSES_WITHIN_SECONDS = 5.0
_STOPPING = BrokerUnavailable("the node is stopping")


@dataclass(slots=True, eq=False)
class _Batch:
    events: list[NewEvent] = field(default_factory=list)
    due: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the batch need not wait for more."""


class GatheringLedger:
    """A ledger that appends recalls after their answers, and before everything that is appended later."""

    def __init__(self, ledger: Ledger, tally: Tally, *, seconds: float = GATHER_SECONDS) -> None:
        self._ledger, self._tally, self._seconds = ledger, tally, seconds
        self._batch: _Batch | None = None
        self._appending: dict[_Batch, asyncio.Task[bool]] = {}
        self._turn = asyncio.Lock()
        self._fails = self._closed = False
        self._outage = Outage("recalls are served and cannot be recorded", "recalls are recorded again", log)
        self.position = 0
        """The position of the last recall that was gathered and appended; 0 before the first."""

    @property
    def waiting(self) -> int:
        """How many recalls are not appended yet."""
        return sum(len(batch.events) for batch in self._appending)

    async def record(self, event: NewEvent, patience: float) -> bool:
        """Append this recall soon; False where it is lost, or waited for longer than `patience` seconds.

        A recall that is lost is counted, once.
        """
        try:
            refuse_unkeepable(event.fact)
            if self._closed:
                raise _STOPPING
            if self.waiting >= MOST_WAITING:
                async with asyncio.timeout(patience):
                    while self.waiting >= MOST_WAITING:
                        await self.flushed()
        except (LedgerError, TimeoutError) as error:
            self._lost(1, error)
            return False
        batch = self._batch
        if batch is None:
            batch = self._batch = _Batch()
            # In a context of its own: the append is no part of the request that comes first.
            self._appending[batch] = asyncio.create_task(self._append_when_due(batch), context=Context())
        batch.events.append(event)
        if len(batch.events) >= MOST_TOGETHER:
            self._batch = None
        if self._batch is None or self._fails:
            batch.due.set()
        if not self._fails:
            return True
        with contextlib.suppress(TimeoutError):  # it is appended or counted later
            async with asyncio.timeout(patience):
                return await asyncio.shield(self._appending[batch])
        return False

    async def flushed(self) -> int:
        """Wait until the recalls served so far are appended or lost; returns the position of the last of them."""
        if self._batch is not None:
            self._batch.due.set()
        if self._appending:
            await asyncio.wait(set(self._appending.values()))
        return self.position

    async def append(self, event: NewEvent) -> Appended:
        """See `Ledger.append`; the recalls served so far come before."""
        await self._first()
        return await self._ledger.append(event)

    async def append_many(self, events: Sequence[NewEvent]) -> list[Appended]:
        """See `Ledger.append_many`; the recalls served so far come before."""
        await self._first()
        return await self._ledger.append_many(events)

    async def read(
        self, start: int = 1, *, follow: bool = False, batch: int = 1_000
    ) -> AsyncGenerator[list[StoredEvent], None]:
        """See `Ledger.read`, with the recalls served so far."""
        await self._first()
        async with contextlib.aclosing(self._ledger.read(start, follow=follow, batch=batch)) as reading:
            async for events in reading:
                yield events

    async def head(self) -> Head:
        """See `Ledger.head`, with the recalls served so far."""
        await self._first()
        return await self._ledger.head()

    async def last_position_of(self, org: str, entity: str, entity_id: str) -> int:
        await self._first()
        return await self._ledger.last_position_of(org, entity, entity_id)

    async def next_position_of(self, org: str, entity: str, entity_id: str, after: int) -> int:
        await self._first()
        return await self._ledger.next_position_of(org, entity, entity_id, after)

    async def close(self) -> None:
        """Append what waits, within CLOSES_WITHIN_SECONDS; the ledger below stays open."""
        self._closed = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSES_WITHIN_SECONDS):
                await self.flushed()
        left = dict(self._appending)
        for batch, task in left.items():
            task.cancel()
            self._lost(len(batch.events), _STOPPING)
        await asyncio.gather(*left.values(), return_exceptions=True)

    async def _first(self) -> None:
        """Let the recalls served so far come first; where the broker does not answer, for a while only."""
        if not self._appending:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_WITHIN_SECONDS):
                await self.flushed()

    async def _append_when_due(self, batch: _Batch) -> bool:
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._seconds):
                    await batch.due.wait()
            async with self._turn:
                if self._batch is batch:  # until now it took more: few batches wait behind one that takes its time
                    self._batch = None
                return await self._append(batch.events)
        finally:
            del self._appending[batch]

    async def _append(self, events: Sequence[NewEvent]) -> bool:
        """Append recalls together, or one by one where one of them is at fault. Whether all were appended."""
        try:
            appended = await publish_judged(self._ledger, self._tally, events)
        except LedgerError as error:
            if len(events) > 1 and not isinstance(error, BrokerUnavailable):
                return all([await self._append([event]) for event in events])
            self._fails = isinstance(error, BrokerUnavailable)
            self._lost(len(events), error)
            return False
        except Exception as error:  # nobody awaits this: what is lost without a trace is lost twice
            log.exception("recalls were not recorded", recalls=len(events))
            self._lost(len(events), error)
            return False
        self._fails = False
        self._outage.over()
        self.position = max(self.position, *(each.position for each in appended))
        return True

    def _lost(self, recalls: int, error: Exception) -> None:
        self._tally.recalls_lost += recalls
        self._outage.met(type(error).__name__, recalls=recalls)

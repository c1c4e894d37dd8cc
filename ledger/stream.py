"""Ledger protocol: append events one by one or in batches, and read them from any position.

`ledger/store/jetstream.py` implements it on NATS JetStream, `ledger/store/in_memory.py` in memory for tests and
notebooks. One contract suite tests both against these docstrings.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Protocol

from ledger.event import Appended, Head, NewEvent, StoredEvent


class Log(Protocol):
    """What is read of a log: in the broker, or in the files of a backup."""

    def read(
        self, start: int = 1, *, follow: bool = False, batch: int = 1_000
    ) -> AsyncGenerator[list[StoredEvent], None]:
        """Yield non-empty lists of up to `batch` events, in order, from position `start`.

        Without `follow` it ends at the head as it was when reading began; with `follow` it waits for more and
        ends only when closed. Backpressure bounds memory: messages are requested only as the caller takes them.
        Raises LogGap when positions are missing, also when `start` lies beyond the position after the head;
        BrokerUnavailable.
        """


class Ledger(Log, Protocol):
    """An append-only log of events, positions 1, 2, 3 … without gaps."""

    async def append(self, event: NewEvent) -> Appended:
        """Append one event durably: once this returns, the event survives kill -9 of every process.

        Idempotent by event id: a duplicate is not stored again; the answer has the first position and
        `duplicate=True`. Raises VersionConflict (`expects` is not the entity's last position),
        PayloadTooLarge, IllegalSubject, BrokerUnavailable (retry with the same event), BrokerMisconfigured.
        """

    async def append_many(self, events: Sequence[NewEvent]) -> list[Appended]:
        """Append events in order, in atomic batches of up to 1,000: each batch is stored whole or not at all.

        An empty list is a no-op. On an error the batches before the failed one are stored; a retry with the
        same events stores each once. Raises as append does.
        """

    async def head(self) -> Head:
        """The current end of the stream."""

    async def last_position_of(self, org: str, entity: str, entity_id: str) -> int:
        """The position of the last event of one entity, 0 when there is none."""

    async def next_position_of(self, org: str, entity: str, entity_id: str, after: int) -> int:
        """The position of the first event of one entity after this position, 0 when there is none."""

    async def close(self) -> None:
        """Release connections. Every acknowledged event is durable already."""


Change = Callable[[Sequence[NewEvent]], Awaitable[Sequence[NewEvent]]]
"""Returns what to append of a few events: as many, with the same ids."""


class ChangingLedger(Ledger, Protocol):
    """A ledger that has events changed while they are appended, where `Ledger.append_many` takes them as they are."""

    async def append_changed(self, events: Sequence[NewEvent], change: Change) -> list[Appended]:
        """See `append_many`; each few events are changed right before they are encoded. Raises what `change` raises."""


async def unchanged(events: Sequence[NewEvent]) -> Sequence[NewEvent]:
    """The change that is none."""
    return events


async def event_at(log: Log, position: int) -> StoredEvent | None:
    """The event at a position; None where the log ends right before it. Raises LogGap, BrokerUnavailable."""
    async with contextlib.aclosing(log.read(position, batch=1)) as lists:
        async for events in lists:
            return events[0]
    return None

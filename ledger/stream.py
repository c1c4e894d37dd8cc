"""What a ledger can do: append one, append many at once, and be read from any position.

`ledger/store/jetstream.py` keeps events on NATS JetStream, `ledger/store/in_memory.py` in memory for tests and
notebooks; one contract suite holds both to this page.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol

from ledger.event import Appended, Head, NewEvent, StoredEvent


class Ledger(Protocol):
    """An append-only log of events, positions 1, 2, 3 … without gaps."""

    async def append(self, event: NewEvent) -> Appended:
        """Keep one event; when this returns the event survives kill -9 of everything.

        An id that is there already is not kept again: the answer names the first position and says
        `duplicate`. Raises VersionConflict (`expects` is not the entity's last position),
        PayloadTooLarge, IllegalSubject, BrokerUnavailable (retry with the same event), BrokerMisconfigured.
        """
        ...

    async def append_many(self, events: Sequence[NewEvent]) -> list[Appended]:
        """Keep events in order, in atomic batches of up to 1,000: a batch is kept whole or not at all.

        An empty list is a no-op. On an error the batches before the failed one are kept; retrying the
        same events keeps each once. Raises as append does.
        """
        ...

    def read(
        self, start: int = 1, *, follow: bool = False, batch: int = 1_000
    ) -> AsyncGenerator[list[StoredEvent], None]:
        """Yield non-empty lists of up to `batch` events, in order, from position `start`.

        Without `follow` it ends at the head as it was when reading began; with it, it waits for more and
        ends only when closed. Memory is bounded: nothing is requested before it is asked for.
        Raises LogGap when positions are missing, also when `start` lies beyond the position after the head;
        BrokerUnavailable.
        """
        ...

    async def head(self) -> Head:
        """The end of the stream, as the broker knows it now."""
        ...

    async def last_position_of(self, org: str, entity: str, entity_id: str) -> int:
        """The position of the last event of one entity, 0 when there is none."""
        ...

    async def close(self) -> None:
        """Release connections. What was appended is kept already."""
        ...

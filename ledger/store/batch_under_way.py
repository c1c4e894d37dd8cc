"""One atomic batch while it is tried: what is left of it to append, and what is in the stream already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ledger.event import Appended, NewEvent
from ledger.store.atomic_batch import OpenBatch
from ledger.wire.publication import Publication, is_about


@dataclass(slots=True)
class BatchUnderWay:
    """`sent` is the batch that the server has open, where it has one with all that is left but for its commit."""

    left: list[Publication]
    ids: list[str]
    """Of the events that are left, as they were noted while those were at hand (ledger/store/batches_ahead.py)."""
    sent: OpenBatch | None
    acknowledged: dict[str, Appended] = field(default_factory=dict)
    """By event id."""

    def stored_up_to(self, last: int) -> None:
        """All that was left is stored, the last of it at this position."""
        ids = self.ids
        self.acknowledged.update(zip(ids, map(Appended, range(last - len(ids) + 1, last + 1), ids), strict=True))
        self.keep([])

    def stored_before(self, positions: Mapping[str, int]) -> None:
        """These events were stored by an earlier try."""
        for event_id, position in positions.items():
            self.acknowledged[event_id] = Appended(position, event_id, duplicate=True)
        self.keep([message for message in self.left if message.event.id not in positions])

    def keep(self, left: list[Publication]) -> None:
        """Only these are left."""
        self.left, self.ids = left, [message.event.id for message in left]

    async def give_up(self) -> None:
        """Have the server drop the open batch."""
        sent, self.sent = self.sent, None
        if sent is not None:
            await sent.abandon()


def expects_within(batch: Sequence[Publication]) -> NewEvent | None:
    """The first event that expects a position of its entity, after another event of that entity in the same batch.

    The server compares with the stream as it was before the batch, and would accept such an event.
    """
    seen: set[tuple[str, str, str]] = set()
    for message in batch:
        about = is_about(message.event)
        if message.event.expects is not None and about in seen:
            return message.event
        seen.add(about)
    return None

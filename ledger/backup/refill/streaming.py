"""Restore publisher for a broker of the restore's own: events are sent in order, and no answer is waited for.

The broker stores each only right behind the one before it. Whoever reads the stream back sees what was stored
(ledger/backup/refill/comparing.py), so no answer is needed for that. An event that is not stored is known by the
stream, which stays behind what was sent: then the rest is sent in batches (ledger/backup/refill/sending.py), whose
answers say what is wrong. The broker may write to its disk later meanwhile; what it has is synced before the stream
counts as restored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Self

from ledger.backup.refill.sending import EXPECTED_LAST, Republication, fits
from ledger.broker.connection import BrokerConnection
from ledger.broker.frames import Outgoing
from ledger.event import StoredEvent
from ledger.store.atomic_batch import pieces
from ledger.wire.publication import error_code

_LOOK_SECONDS = 2.0


class NotTaken(Exception):
    """The broker has not stored all of what was sent."""


class Streamer:
    """Publishes events in order after `position`, to a stream without other writers. Used as a context manager."""

    def __init__(self, connection: BrokerConnection, stream: str, position: int) -> None:
        self._connection, self._stream = connection, stream
        self.position = position
        """The last position that was sent, or is about to be; it may not be stored yet."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Nothing is kept back."""

    async def send(self, events: Sequence[Republication]) -> None:
        """Publish events; skips those at or before `position`. Raises NotTaken, BrokerUnavailable."""
        for piece in pieces([each for each in events if each.event.position > self.position]):
            await self._connection.publish_together([self._following(*each) for each in piece])
            await asyncio.sleep(0)

    def _following(self, event: StoredEvent, headers: dict[str, str]) -> Outgoing:
        """The next event, to be stored right behind the one before. Raises NotTaken."""
        if event.position != self.position + 1 or not fits(self._connection, event, headers):
            raise NotTaken(f"the event at position {event.position}")
        self.position += 1
        return event.subject, event.body, headers, f"\r\n{EXPECTED_LAST}: {event.position - 1}"

    async def settle(self) -> None:
        """Nothing is kept back."""

    async def until_not_taken(self) -> None:
        """Return once the broker stores nothing more, and has less than was sent. Raises BrokerUnavailable."""
        stored = -1
        while True:
            sent, before = self.position, stored
            await asyncio.sleep(_LOOK_SECONDS)
            info = await self._connection.api(f"STREAM.INFO.{self._stream}")
            stored = 0 if error_code(info) else int(info["state"]["last_seq"])
            if before == stored < sent:
                return

"""Batches ahead: the next batch is encoded and sent while the server stores the one before.

Sent is all but its last message, which commits it: so batches are stored in order, and none after one that failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from kledger.contract.errors import BrokerUnavailable, LedgerError
from ledger.broker.connection import BrokerConnection
from ledger.event import NewEvent
from ledger.store.atomic_batch import OpenBatch
from ledger.store.batch_encoder import BatchEncoder
from ledger.stream import Change
from ledger.wire.publication import Publication


class Prepared(NamedTuple):
    """An encoded batch; `sent` where it is with the server already.

    The events have left the processor's caches when the batch is stored: what is asked of all of them is noted before.
    """

    messages: list[Publication]
    ids: list[str]
    """Of the events."""
    expecting: bool
    """Whether any of them expects a position of its entity."""
    sent: OpenBatch | None
    error: LedgerError | None = None


class BatchesAhead:
    """The batches of one list of events, changed, one after the other. `room` bounds the open batches of a ledger."""

    def __init__(
        self, events: Sequence[NewEvent], change: Change, connection: BrokerConnection, room: asyncio.Semaphore
    ) -> None:
        self._encoder = BatchEncoder(events, connection.client.max_payload, change)
        self._connection, self._room = connection, room
        self._held = 0
        self._next: Prepared | None = None

    async def take(self) -> Prepared | None:
        """The next batch, None at the end; the one before is done with.

        Raises PayloadTooLarge, IllegalSubject, and what the change raises.
        """
        if self._next is None:
            self._next = await self._prepared(in_turn=True)
        elif self._held > 1:
            self._release(1)
        if self._next.error is not None:
            raise self._next.error
        taken, self._next = self._next, None
        return taken if taken.messages else None

    async def prepare(self) -> None:
        """Have the next batch ready, and sent where the server may have one more open. Raises nothing of it."""
        if self._next is None:
            self._next = await self._prepared(in_turn=False)

    async def close(self) -> None:
        """Give up what is prepared and not taken."""
        self._release(self._held)
        if self._next is not None and self._next.sent is not None:
            await self._next.sent.abandon()

    async def _prepared(self, *, in_turn: bool) -> Prepared:
        """The next batch; `in_turn` it waits for room.

        It takes room once its first piece is there: a change may wait for long, and keeps no other list from the log.
        """
        messages: list[Publication] = []
        ids: list[str] = []
        expecting = False
        sent = open_batch = None
        try:
            while piece := await self._encoder.piece():
                if not messages:
                    sent = open_batch = await self._opened(in_turn)
                messages += piece
                ids += [message.event.id for message in piece]
                expecting = expecting or any(message.event.expects is not None for message in piece)
                if sent is None:
                    await asyncio.sleep(0)
                    continue
                try:
                    await sent.add(piece)  # in which other tasks get their turn
                except BrokerUnavailable:  # it is sent again in its turn, and waits for the broker then
                    sent = None
        except LedgerError as error:  # of this batch: the one under way must not fail
            return Prepared(messages, ids, expecting, sent, error)
        except BaseException:
            if open_batch is not None:
                await open_batch.abandon()
            raise
        return Prepared(messages, ids, expecting, sent)

    async def _opened(self, in_turn: bool) -> OpenBatch | None:
        """A batch to send to; None where the server may have no more of them open, and it is not its turn."""
        if not in_turn and self._room.locked():
            return None
        if not (in_turn and self._held):
            await self._room.acquire()
            self._held += 1
        return OpenBatch(self._connection)

    def _release(self, count: int) -> None:
        self._held -= count
        for _ in range(count):
            self._room.release()

"""Batch encoder: encodes the next batch while the server works on the previous one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence

from kledger.contract.errors import LedgerError
from ledger.event import NewEvent
from ledger.store.atomic_batch import MAX_BYTES, MAX_MESSAGES
from ledger.wire.publication import Publication, publication

_AT_ONCE = 500  # events encoded before other tasks get their turn: about 4 ms


class BatchEncoder:
    """Splits messages into batches and encodes each of them ahead of time."""

    def __init__(self, messages: Iterator[Publication]) -> None:
        self._messages = messages
        self._batch: list[Publication] = []
        self._size = 0
        self._next: Publication | None = None  # the first message that did not fit into the batch
        self._full = False
        self._error: LedgerError | None = None

    def prepare(self) -> None:
        """Encode some more messages, for a few milliseconds at most."""
        if self._full or self._error is not None:
            return
        try:
            for _ in range(_AT_ONCE):
                message = self._next or next(self._messages, None)
                self._next = None
                if message is None or len(self._batch) == MAX_MESSAGES:
                    self._next, self._full = message, True
                    return
                if self._batch and self._size + len(message.body) > MAX_BYTES:
                    self._next, self._full = message, True
                    return
                self._batch.append(message)
                self._size += len(message.body)
        except LedgerError as error:  # of the next batch: the one under way must not fail
            self._error = error

    async def take(self) -> list[Publication]:
        """The next batch, empty at the end; other tasks get their turn while it is encoded."""
        self.prepare()
        while not self._full and self._error is None:
            await asyncio.sleep(0)
            self.prepare()
        if self._error is not None:
            raise self._error
        batch, self._batch, self._size, self._full = self._batch, [], 0, False
        return batch


def publications(events: Sequence[NewEvent], max_payload: int) -> Iterator[Publication]:
    """Encode events, each id once. Raises PayloadTooLarge, IllegalSubject."""
    seen: set[str] = set()
    for event in events:
        if event.id not in seen:
            seen.add(event.id)
            yield publication(event, max_payload)

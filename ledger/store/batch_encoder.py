"""Batch encoder: encodes events piece by piece, and says where one atomic batch ends and the next begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ledger.event import NewEvent
from ledger.store.atomic_batch import MAX_BYTES, MAX_MESSAGES
from ledger.wire.publication import Publication, publication

_AT_ONCE = 128  # events encoded before other tasks get their turn: 1 ms, 2 ms where all are sealed


class BatchEncoder:
    """Encodes events, each id once, in pieces of batches that the broker takes."""

    def __init__(self, events: Sequence[NewEvent], max_payload: int) -> None:
        self._messages = publications(events, max_payload)
        self._next: Publication | None = None  # the first message that did not fit into the batch
        self._count = self._size = 0

    def piece(self) -> list[Publication]:
        """Some more messages of the batch; empty at its end, which begins the next one.

        Raises PayloadTooLarge, IllegalSubject.
        """
        piece: list[Publication] = []
        count, size = self._count, self._size
        while len(piece) < _AT_ONCE:
            message = self._next or next(self._messages, None)
            if message is None:
                break
            if count == MAX_MESSAGES or (count and size + len(message.body) > MAX_BYTES):
                self._next = message
                break
            self._next = None
            piece.append(message)
            count += 1
            size += len(message.body)
        self._count, self._size = (count, size) if piece else (0, 0)
        return piece


def publications(events: Sequence[NewEvent], max_payload: int) -> Iterator[Publication]:
    """Encode events, each id once. Raises PayloadTooLarge, IllegalSubject."""
    seen: set[str] = set()
    for event in events:
        if event.id not in seen:
            seen.add(event.id)
            yield publication(event, max_payload)

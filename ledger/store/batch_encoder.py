"""Batch encoder: encodes events piece by piece, and says where one atomic batch ends and the next begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from ledger.event import NewEvent
from ledger.store.atomic_batch import MAX_BYTES, MAX_MESSAGES
from ledger.stream import Change, unchanged
from ledger.wire.publication import Publication, publications

_AT_ONCE = 250  # events encoded before other tasks get their turn: 2 ms, 4 ms where all are sealed


class BatchEncoder:
    """Encodes events, each id once, in pieces of batches that the broker takes. `change` gets each piece before."""

    def __init__(self, events: Sequence[NewEvent], max_payload: int, change: Change = unchanged) -> None:
        self._events, self._max_payload, self._change = _each_once(events), max_payload, change
        self._left: list[Publication] = []  # encoded messages that did not fit into the batch
        self._count = self._size = 0

    async def piece(self) -> list[Publication]:
        """Some more messages of the batch; empty at its end, which begins the next one.

        Raises PayloadTooLarge, IllegalSubject, and what the change raises.
        """
        room = min(_AT_ONCE, MAX_MESSAGES - self._count)
        if not room:
            self._count = self._size = 0
            return []
        messages = self._left or publications(await self._change(list(islice(self._events, room))), self._max_payload)
        size = self._size + sum([len(message.body) for message in messages])
        fitting = len(messages)
        while size > MAX_BYTES and (fitting > 1 or self._count):  # one that is alone is the broker's to refuse
            fitting -= 1
            size -= len(messages[fitting].body)
        piece, self._left = messages[:fitting], messages[fitting:]
        self._count, self._size = (self._count + fitting, size) if piece else (0, 0)
        return piece


def _each_once(events: Sequence[NewEvent]) -> Iterator[NewEvent]:
    seen: set[str] = set()
    for event in events:
        if event.id not in seen:
            seen.add(event.id)
            yield event

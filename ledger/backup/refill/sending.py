"""Restore publisher: publishes the events of a backup again, each at its old position.

It uses atomic batches that name the position they follow, so that no other writer can get in between. While the broker
stores one, all of the next but its last message is sent, which commits it: so batches are stored in order. The broker
accepts a message id only once within its duplicate window: a second event with the same id carries it in a header of
ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple, Self

from kledger.contract.errors import BrokerUnavailable, PayloadTooLarge, RestoreRefused
from ledger.broker.connection import BrokerConnection
from ledger.broker.restored import headers_for
from ledger.event import JsonObject, StoredEvent
from ledger.store.atomic_batch import MAX_BYTES, MAX_MESSAGES, OpenBatch, send_batch
from ledger.wire.publication import DUPLICATE_IN_BATCH, PASSING, WRONG_LAST_SEQUENCE, error_code, error_of, parse_answer

EXPECTED_LAST = "Nats-Expected-Last-Sequence"
TIMEOUT = 30.0
_PAUSE = 0.1
# Bytes of the first and the last line of the header block; of the batch headers and the expected position.
_HEADER_LINES = 12
_BATCH_HEADERS = 160
# More than all headers have but for the message id, of which a character takes six bytes at most: UTF-8 in base64.
_MOST_OF_HEADERS = 512


class Republication(NamedTuple):
    """One event of a backup with the headers to publish it with."""

    event: StoredEvent
    headers: dict[str, str]

    @property
    def subject(self) -> str:
        return self.event.subject

    @property
    def body(self) -> bytes:
        return self.event.body


def republications(events: Sequence[StoredEvent]) -> list[Republication]:
    """Events with the headers to publish them with."""
    return [Republication(event, headers_for(event)) for event in events]


def fits(
    connection: BrokerConnection, event: StoredEvent, headers: dict[str, str], *, beside: int = _BATCH_HEADERS
) -> bool:
    """Whether the broker takes a message of this event with its headers, and so many bytes of others `beside` them."""
    most = connection.client.max_payload
    if len(event.body) + _MOST_OF_HEADERS + 6 * len(event.message_id) <= most:
        return True
    length = sum(len(name) + len(value) + 4 for name, value in headers.items())
    return len(event.body) + length + _HEADER_LINES + beside <= most


class _UnderWay(NamedTuple):
    """A batch that the broker is storing, and its answer."""

    batch: list[Republication]
    answer: asyncio.Task[JsonObject]


def _following(one: Republication, position: int) -> Republication:
    """An event that is taken only behind this position."""
    return Republication(one.event, {**one.headers, EXPECTED_LAST: str(position)})


class Sender:
    """Publishes events in order after `position`, to a stream without other writers. Used as a context manager.

    What was given to `send` is stored when `settle` returns.
    """

    def __init__(self, connection: BrokerConnection, stream: str, position: int) -> None:
        self._connection, self._stream = connection, stream
        self.position = position
        self._under_way: _UnderWay | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        """Wait for nothing more: what is under way is stored, or it is not."""
        if self._under_way is not None:
            self._under_way.answer.cancel()
            await asyncio.gather(self._under_way.answer, return_exceptions=True)

    async def send(self, events: Sequence[Republication]) -> None:
        """Publish events; skips those at or before `position`, which are in the stream already.

        The last of them may be under way still. Raises RestoreRefused (another writer), PayloadTooLarge,
        BrokerUnavailable, BrokerMisconfigured.
        """
        batch: list[Republication] = []
        size = 0
        for one in events:
            if not fits(self._connection, *one):
                await self._follow(batch)
                await self.settle()
                await self._send_single(one)
                batch, size = [], 0
                continue
            if len(batch) == MAX_MESSAGES or (batch and size + len(one.body) > MAX_BYTES):
                await self._follow(batch)
                batch, size = [], 0
            batch.append(one)
            size += len(one.body)
        await self._follow(batch)

    async def settle(self) -> None:
        """Wait until the batch under way is stored; one that was not taken is sent again. Raises as `send` does."""
        if self._under_way is None:
            return
        (batch, answer), self._under_way = self._under_way, None
        try:
            told = await answer
        except BrokerUnavailable:
            await self._send(batch)
            return
        if error_code(told):
            await self._send(batch)  # it tells what is wrong, where that stays so
        else:
            self._acknowledge(batch[-1], told)

    async def _follow(self, batch: list[Republication]) -> None:
        """Send a batch while the one before is stored; then leave it under way."""
        batch = [one for one in batch if one.event.position > self.position]
        if not batch:
            return
        opened = OpenBatch(self._connection)
        try:
            first = _following(batch[0], batch[0].event.position - 1)
            await opened.add([first, *batch[1:]])
        except BrokerUnavailable:
            await self.settle()
            await self._send(batch)
            return
        try:
            await self.settle()
            self._check_order(batch[0])
        except BaseException:
            await opened.abandon()
            raise
        self._under_way = _UnderWay(batch, asyncio.ensure_future(opened.commit(TIMEOUT)))

    async def _send(self, batch: list[Republication]) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + TIMEOUT
        batch = [one for one in batch if one.event.position > self.position]
        while batch:
            self._check_order(batch[0])
            batch[0] = _following(batch[0], self.position)
            try:
                answer = await send_batch(self._connection, batch, max(0.001, deadline - loop.time()))
                code = error_code(answer)
                if not code:
                    self._acknowledge(batch[-1], answer)
                    return
                if code == DUPLICATE_IN_BATCH:
                    for one in batch:
                        await self._send_single(one)
                    return
                if code not in PASSING | WRONG_LAST_SEQUENCE:
                    raise error_of(answer, f"a batch of {len(batch)} events")
                trouble = self._not_taken()
            except BrokerUnavailable as error:
                trouble = error
            await self._refresh_position(trouble, deadline)
            batch = [one for one in batch if one.event.position > self.position]

    def _not_taken(self) -> BrokerUnavailable:
        return BrokerUnavailable(f"the broker does not take what follows position {self.position}: retry")

    async def _send_single(self, one: Republication) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + TIMEOUT
        while one.event.position > self.position:
            self._check_order(one)
            one = _following(one, self.position)
            if not fits(self._connection, *one, beside=0):
                raise PayloadTooLarge(
                    f"the event at position {one.event.position} does not fit with what a restore adds to it: raise "
                    f"max_payload of the broker, which is {self._connection.client.max_payload:,}, by 64 KiB"
                )
            try:
                left = max(0.001, deadline - loop.time())
                reply = await self._connection.request(one.subject, one.body, one.headers, timeout=left)
                answer = parse_answer(reply.data)
                code = error_code(answer)
                if not code and answer.get("duplicate"):
                    one = Republication(one.event, headers_for(one.event, plain_id=False))
                    continue
                if not code:
                    self._acknowledge(one, answer)
                    return
                if code not in PASSING | WRONG_LAST_SEQUENCE:
                    raise error_of(answer, f"the event at position {one.event.position}")
                trouble = self._not_taken()
            except BrokerUnavailable as error:
                trouble = error
            await self._refresh_position(trouble, deadline)

    def _check_order(self, one: Republication) -> None:
        if one.event.position != self.position + 1:
            raise RestoreRefused(
                f"the stream {self._stream} ends at position {self.position}, the next event of the backup belongs to "
                f"{one.event.position}: somebody else wrote there, or the broker lost what it had acknowledged. "
                "Start over with --start-over, while nothing writes"
            )

    def _acknowledge(self, last: Republication, answer: JsonObject) -> None:
        if int(answer["seq"]) != last.event.position:
            raise RestoreRefused(
                f"the broker kept position {last.event.position} of the backup at {answer['seq']}: somebody else "
                "writes to the stream. Start over with --start-over, while nothing writes"
            )
        self.position = last.event.position

    async def _refresh_position(self, trouble: BrokerUnavailable, deadline: float) -> None:
        """Set `position` to the stream's end after a try with unknown outcome; raise `trouble` after the deadline."""
        if asyncio.get_running_loop().time() + _PAUSE > deadline:
            raise trouble
        await asyncio.sleep(_PAUSE)
        try:
            info = await self._connection.api(f"STREAM.INFO.{self._stream}")
        except BrokerUnavailable:
            return
        if not error_code(info):
            self.position = int(info["state"]["last_seq"])

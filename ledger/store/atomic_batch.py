"""Atomic batch publish: stores many events at once, all or none.

https://github.com/nats-io/nats-architecture-and-design/blob/main/adr/ADR-50.md; the client library has no
helper for it. A batch costs four fsyncs whatever its size. Its messages are sent without waiting for the answer to the
first: where the server cannot open the batch, it refuses the commit as well.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from typing import Protocol, TypeVar

from kledger.contract.errors import BrokerUnavailable
from ledger.broker.connection import BrokerConnection
from ledger.broker.frames import Outgoing
from ledger.event import JsonObject
from ledger.wire.publication import parse_answer

MAX_MESSAGES = 1_000
MAX_BYTES = 16 * 1024 * 1024
_COMMIT = "\r\nNats-Batch-Commit: 1"
_ID_BYTES = 12  # nobody guesses it, and could add to the batch; the log keeps it with each event
_AFTER_ANY = 2 * MAX_MESSAGES
# Sent in one piece; then the event loop gets its turn, so that the socket is written and the server starts to work.
_TOGETHER, _BYTES_TOGETHER = 250, 1024 * 1024


class Message(Protocol):
    """A message to publish."""

    @property
    def subject(self) -> str: ...
    @property
    def body(self) -> bytes: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


AnyMessage = TypeVar("AnyMessage", bound=Message)


class OpenBatch:
    """A batch of up to 1,000 messages, which are sent as they are added. The last one is kept back: it commits."""

    def __init__(self, connection: BrokerConnection) -> None:
        self._connection = connection
        batch_id = secrets.token_urlsafe(_ID_BYTES)
        self._lines = f"\r\nNats-Batch-Id: {batch_id}\r\nNats-Batch-Sequence: "
        self._sent = 0
        self._last: Message | None = None

    async def add(self, messages: Sequence[Message]) -> None:
        """Send these, but for the last one. Raises BrokerUnavailable."""
        if not messages:
            return
        kept, self._last = self._last, messages[-1]
        for piece in pieces(messages[:-1] if kept is None else [kept, *messages[:-1]]):
            await self._send(piece)

    async def commit(self, timeout: float, meanwhile: Callable[[], Awaitable[None]] | None = None) -> JsonObject:
        """Store the batch, and return the broker's answer: `seq` is the last position, or `error`.

        `meanwhile` is awaited while the server works. Raises BrokerUnavailable, BrokerMisconfigured: the batch was
        then stored whole or not at all.
        """
        last = self._last
        assert last is not None, "a batch has at least one message"
        deadline = asyncio.get_running_loop().time() + timeout
        lines = f"{self._lines}{self._sent + 1}{_COMMIT}"
        # At once: `meanwhile` encodes, before the event loop would write it.
        pending = await self._connection.ask(last.subject, last.body, last.headers, lines, at_once=True)
        if meanwhile is not None:
            try:
                await meanwhile()
            except BaseException:
                self._connection.give_up(pending)
                raise
        left = max(0.001, deadline - asyncio.get_running_loop().time())
        return parse_answer((await self._connection.answer(pending, last.subject, left)).data)

    async def abandon(self) -> None:
        """Have the server drop what it has of the batch, which it would keep for ten seconds else."""
        if self._last is not None and self._sent:
            with contextlib.suppress(BrokerUnavailable):  # the server drops it by itself then
                # A message out of sequence ends a batch.
                await self._publish([(self._last.subject, b"", {}, f"{self._lines}{_AFTER_ANY}")])

    async def _send(self, piece: Sequence[Message]) -> None:
        lines, begins = self._lines, self._sent + 1
        self._sent += len(piece)
        await self._publish(
            [(each.subject, each.body, each.headers, f"{lines}{number}") for number, each in enumerate(piece, begins)]
        )
        await asyncio.sleep(0)

    async def _publish(self, messages: Sequence[Outgoing]) -> None:
        try:
            await self._connection.publish_together(messages)
        except BrokerUnavailable as error:
            raise BrokerUnavailable(f"a batch was cut after {self._sent} messages: {error}") from error


async def send_batch(connection: BrokerConnection, messages: Sequence[Message], timeout: float) -> JsonObject:
    """Publish a batch of up to 1,000 messages. See `OpenBatch.commit`."""
    deadline = asyncio.get_running_loop().time() + timeout
    batch = OpenBatch(connection)
    await batch.add(messages)
    return await batch.commit(max(0.001, deadline - asyncio.get_running_loop().time()))


def pieces(messages: Sequence[AnyMessage]) -> Iterator[Sequence[AnyMessage]]:
    """Messages in the pieces in which they are sent, between which the event loop has its turn."""
    if len(messages) <= _TOGETHER and sum([len(message.body) for message in messages]) <= _BYTES_TOGETHER:
        if messages:
            yield messages
        return
    piece: list[AnyMessage] = []
    size = 0
    for message in messages:
        piece.append(message)
        size += len(message.body)
        if len(piece) == _TOGETHER or size > _BYTES_TOGETHER:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece

"""Atomic batch publish: stores many events at once, all or none.

https://github.com/nats-io/nats-architecture-and-design/blob/main/adr/ADR-50.md; the client library has no
helper for it. A batch costs four fsyncs whatever its size.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import nats.errors

from kledger.contract.errors import BrokerUnavailable
from ledger.broker.connection import BrokerConnection
from ledger.event import JsonObject
from ledger.wire.publication import parse_answer

MAX_MESSAGES = 1_000
MAX_BYTES = 16 * 1024 * 1024
_BATCH_ID, _SEQUENCE, _COMMIT = "Nats-Batch-Id", "Nats-Batch-Sequence", "Nats-Batch-Commit"
# Sent in one piece; then the event loop gets its turn, so that the socket is written and the server starts to work.
_TOGETHER, _BYTES_TOGETHER = 128, 1024 * 1024

Outgoing = tuple[str, bytes, dict[str, str]]
"""Subject, body and headers of a message of a batch."""


class Message(Protocol):
    """A message to publish."""

    @property
    def subject(self) -> str: ...
    @property
    def body(self) -> bytes: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


async def send_batch(
    connection: BrokerConnection,
    publications: Sequence[Message],
    timeout: float,
    *,
    meanwhile: Callable[[], None] | None = None,
) -> JsonObject:
    """Publish a batch of up to 1,000 messages and return the broker's answer: `seq` is the last position, or `error`.

    `meanwhile` is called once while the server works. Raises BrokerUnavailable, BrokerMisconfigured: the batch was
    then stored whole or not at all.
    """
    batch_id = uuid.uuid4().hex
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout

    async def answer(message: Outgoing) -> bytes:
        pending = await connection.ask(*message)
        if message is commit and meanwhile is not None:
            await asyncio.sleep(0)
            meanwhile()
        left = max(0.001, deadline - loop.time())
        return (await connection.answer(pending, message[0], left)).data

    *before, commit = (
        (each.subject, each.body, {**each.headers, _BATCH_ID: batch_id, _SEQUENCE: str(number)})
        for number, each in enumerate(publications, 1)
    )
    commit[2][_COMMIT] = "1"
    if before and (refused := await answer(before[0])):
        return parse_answer(refused)  # the answer to the first message is empty where the batch is open
    for piece in _pieces(before[1:]):
        try:
            await connection.client.publish_together(piece)
        except nats.errors.Error as error:
            raise BrokerUnavailable(f"a batch of {len(publications)} messages was cut: {error}") from error
        await asyncio.sleep(0)
    return parse_answer(await answer(commit))


def _pieces(messages: Sequence[Outgoing]) -> Iterator[list[Outgoing]]:
    piece: list[Outgoing] = []
    size = 0
    for message in messages:
        piece.append(message)
        size += len(message[1])
        if len(piece) == _TOGETHER or size > _BYTES_TOGETHER:
            yield piece
            piece, size = [], 0
    if piece:
        yield piece

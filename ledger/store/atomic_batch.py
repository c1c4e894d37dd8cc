"""Atomic batch publish: stores many events at once, all or none.

https://github.com/nats-io/nats-architecture-and-design/blob/main/adr/ADR-50.md; the client library has no
helper for it. A batch costs four fsyncs whatever its size.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import nats.errors

from kledger.contract.errors import BrokerUnavailable
from ledger.broker.connection import BrokerConnection
from ledger.event import JsonObject
from ledger.wire.publication import parse_answer

MAX_MESSAGES = 1_000
MAX_BYTES = 16 * 1024 * 1024
_BATCH_ID, _SEQUENCE, _COMMIT = "Nats-Batch-Id", "Nats-Batch-Sequence", "Nats-Batch-Commit"
# Yield to the event loop after this many messages, so that the socket is written and the server starts to work.
_YIELD_EVERY = 128


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
    last = len(publications)
    loop = asyncio.get_running_loop()
    deadline = loop.time() + timeout
    publish = connection.client.publish  # saves one call per message compared with connection.send
    for number, publication in enumerate(publications, 1):
        headers = dict(publication.headers)
        headers[_BATCH_ID], headers[_SEQUENCE] = batch_id, str(number)
        if number == last:
            headers[_COMMIT] = "1"
        elif number > 1:
            try:
                await publish(publication.subject, publication.body, headers=headers)
            except nats.errors.Error as error:
                raise BrokerUnavailable(f"a batch was cut after {number - 1} messages: {error}") from error
            if number % _YIELD_EVERY == 0:
                await asyncio.sleep(0)
            continue
        pending = await connection.ask(publication.subject, publication.body, headers)
        if number == last and meanwhile is not None:
            await asyncio.sleep(0)
            meanwhile()
        left = max(0.001, deadline - loop.time())
        reply = await connection.answer(pending, publication.subject, left)
        if reply.data:  # the answer to the first message is empty: the batch is open
            return parse_answer(reply.data)
    raise AssertionError("a batch has at least one message, and its last one is answered")

"""How are events kept on NATS JetStream? The ledger of every real node; the contract is in stream.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import datetime

import orjson

from ledger.access import LEDGER_STREAM, BrokerAccess, Role
from ledger.atomic_batch import MAX_BYTES, MAX_MESSAGES, send_batch
from ledger.connection import BrokerConnection
from ledger.errors import BrokerUnavailable
from ledger.event import Appended, Head, JsonObject, NewEvent, StoredEvent
from ledger.jetstream_read import read_stream
from ledger.kept_already import find_kept, last_position
from ledger.publication import (
    DUPLICATE_IN_BATCH,
    PASSING,
    WRONG_LAST_SEQUENCE,
    Publication,
    conflict,
    error_code,
    error_of,
    is_about,
    parse_answer,
    publication,
)
from ledger.stream_setup import check_settings
from ledger.subjects import history_filter

APPEND_TIMEOUT = 10.0  # a cluster that lost its leader takes 4-6 s to have another
_OPEN_BATCHES = 8  # the server takes 50 a stream, from all writers together
_PAUSE = 0.02


class JetStreamLedger:
    """A ledger on one JetStream stream, with a connection to write and another to read."""

    def __init__(
        self,
        writing: BrokerConnection,
        reading: BrokerConnection,
        *,
        stream: str = LEDGER_STREAM,
        append_timeout: float = APPEND_TIMEOUT,
    ) -> None:
        self._writing, self._reading = writing, reading
        self._stream, self._timeout = stream, append_timeout
        self._batches = asyncio.Semaphore(_OPEN_BATCHES)

    @classmethod
    async def connect(
        cls,
        access: BrokerAccess,
        *,
        role: Role = "node",
        stream: str = LEDGER_STREAM,
        name: str = "kledger",
        append_timeout: float = APPEND_TIMEOUT,
    ) -> JetStreamLedger:
        """Connect to a stream that `ensure_stream` has set up, and check its settings.

        Raises BrokerUnavailable, BrokerMisconfigured.
        """
        writing = await BrokerConnection.open(access, role, name=f"{name}-write")
        try:
            info = await writing.api(f"STREAM.INFO.{stream}")
            if error_code(info):
                raise error_of(info, f"a look at the stream {stream}")
            check_settings(info["config"])
            reading = await BrokerConnection.open(access, role, name=f"{name}-read")
        except BaseException:
            await writing.close()
            raise
        return cls(writing, reading, stream=stream, append_timeout=append_timeout)

    async def append(self, event: NewEvent) -> Appended:
        message = publication(event, self._writing.client.max_payload)
        deadline = asyncio.get_running_loop().time() + self._timeout
        while True:
            left = self._left(deadline)
            try:
                reply = await self._writing.request(
                    message.subject, message.body, message.headers, timeout=left
                )
                answer = parse_answer(reply.data)
                code = error_code(answer)
                if not code:
                    return Appended(int(answer["seq"]), event.id, bool(answer.get("duplicate")))
                if code in WRONG_LAST_SEQUENCE:
                    found = await find_kept(self._writing, self._stream, [message])
                    if event.id in found:
                        return Appended(found[event.id], event.id, duplicate=True)
                    raise conflict(event, await last_position(self._writing, self._stream, event))
                error = error_of(answer, f"{event.fact.name} of {event.entity_id[:80]!r}")
                if code not in PASSING:
                    raise error
            except BrokerUnavailable as unavailable:
                error = unavailable
            await self._pause(deadline, error)

    async def append_many(self, events: Sequence[NewEvent]) -> list[Appended]:
        appended: dict[str, Appended] = {}
        result: list[Appended] = []
        batch, position = self._next_batch(events, 0, appended)
        while batch:
            following: list[tuple[list[Publication], int]] = []
            seen = appended.keys() | {message.event.id for message in batch}

            def prepare(
                start: int = position,
                into: list[tuple[list[Publication], int]] = following,
                seen: set[str] = seen,
            ) -> None:
                into.append(self._next_batch(events, start, seen))

            async with self._batches:
                appended |= await self._append_batch(batch, prepare)
            batch, position = following[0] if following else self._next_batch(events, position, appended)
        told: set[str] = set()
        for event in events:
            kept = appended[event.id]
            result.append(kept if event.id not in told else Appended(kept.position, event.id, duplicate=True))
            told.add(event.id)
        return result

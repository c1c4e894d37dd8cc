"""How are events kept on NATS JetStream? The ledger of every real node; the contract is in stream.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass

import orjson
import structlog

from kledger.contract.errors import BrokerUnavailable, LedgerError
from ledger.broker.access import LEDGER_STREAM, BrokerAccess, Role
from ledger.broker.connection import BrokerConnection
from ledger.broker.stream_setup import check_settings
from ledger.event import Appended, Head, JsonObject, NewEvent, StoredEvent
from ledger.store.atomic_batch import send_batch
from ledger.store.batch_encoder import Ahead, publications
from ledger.store.claimed_ids import is_ours, known_positions, renamed
from ledger.store.duplicates import find_kept, last_position
from ledger.store.reader import read_stream
from ledger.store.restored import restored_to
from ledger.store.stale_copies import event_at, nanoseconds
from ledger.wire.publication import (
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
from ledger.wire.subjects import history_filter

log = structlog.get_logger(__name__)

APPEND_TIMEOUT = 10.0  # a cluster that lost its leader takes 4-6 s to have another
_OPEN_BATCHES = 8  # a server that is not configured by us takes 50 a stream, from all writers together
_PAUSE = 0.02


NO_EVENTS = Head(0, 0)


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """A stream as its broker tells of it: its end, how many events in how many bytes, the server's version."""

    head: Head = NO_EVENTS
    messages: int = 0
    bytes: int = 0
    server: str = "unknown"


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
        self.hindered: Callable[[], str | None] = lambda: None
        """Says why the broker keeps nothing at present, where that is known: an append then fails at once."""

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
                reply = await self._writing.request(message.subject, message.body, message.headers, timeout=left)
                answer = parse_answer(reply.data)
                code = error_code(answer)
                if not code:
                    position, again = int(answer["seq"]), bool(answer.get("duplicate"))
                    if not again or await is_ours(self._writing, self._stream, position, message):
                        return Appended(position, event.id, duplicate=again)
                    found = await find_kept(self._writing, self._stream, [message])  # by an earlier, renamed try
                    if event.id in found:
                        return Appended(found[event.id], event.id, duplicate=True)
                    log.warning("message_id_claimed", event_id=event.id, subject=message.subject, position=position)
                    message = renamed(message)
                    error: LedgerError = _moving()
                elif code in WRONG_LAST_SEQUENCE:
                    found = await find_kept(self._writing, self._stream, [message])
                    if event.id in found:
                        return Appended(found[event.id], event.id, duplicate=True)
                    await self._raise_conflict([message])
                    error = _moving()
                else:
                    error = error_of(answer, f"{event.fact.name} of {event.entity_id[:80]!r}")
                    if code not in PASSING:
                        raise error
            except BrokerUnavailable as unavailable:
                error = unavailable
            await self._pause(deadline, error)

    async def append_many(self, events: Sequence[NewEvent]) -> list[Appended]:
        kept: dict[str, Appended] = {}
        ahead = Ahead(publications(events, self._writing.client.max_payload))
        while batch := await ahead.take():
            async with self._batches:
                kept |= await self._append_batch(batch, ahead.prepare)
        told: set[str] = set()
        result: list[Appended] = []
        for event in events:
            appended = kept[event.id]
            again = event.id in told  # the caller named one event twice
            result.append(Appended(appended.position, event.id, duplicate=True) if again else appended)
            told.add(event.id)
        return result

    def read(
        self, start: int = 1, *, follow: bool = False, batch: int = 1_000
    ) -> AsyncGenerator[list[StoredEvent], None]:
        return read_stream(self._reading, self._stream, start, follow=follow, batch=batch)

    async def head(self) -> Head:
        """The last position of the stream, now."""
        return (await self.status()).head

    async def status(self) -> StreamStatus:
        """What the broker says of the stream and of itself. Raises BrokerUnavailable."""
        info = await self._reading.api(f"STREAM.INFO.{self._stream}")
        if error_code(info):
            raise error_of(info, f"a look at the stream {self._stream}")
        state = info["state"]
        position = int(state["last_seq"])
        stored_ns = nanoseconds(state["last_ts"]) if position else 0
        if 0 < position <= restored_to(info["config"]):  # then the broker's own time is that of the restore
            last = await event_at(self._reading, self._stream, position, position)
            stored_ns = last.stored_ns if last else stored_ns
        head = Head(position, stored_ns)
        return StreamStatus(head, int(state["messages"]), int(state["bytes"]), self._reading.server_version)

    async def restored_to(self) -> int:
        """Up to which position the stream came from a backup, 0 where it did not. Raises BrokerUnavailable."""
        info = await self._reading.api(f"STREAM.INFO.{self._stream}")
        if error_code(info):
            raise error_of(info, f"a look at the stream {self._stream}")
        return restored_to(info["config"])

    async def last_position_of(self, org: str, entity: str, entity_id: str) -> int:
        query: JsonObject = {"last_by_subj": history_filter(org, entity, entity_id)}
        reply = await self._reading.request(f"$JS.API.DIRECT.GET.{self._stream}", orjson.dumps(query))
        headers = reply.headers or {}
        if "Nats-Sequence" in headers:
            return int(headers["Nats-Sequence"])
        if headers.get("Status") == "404":
            return 0
        raise BrokerUnavailable(f"the broker did not answer a look at the stream: {headers}")

    async def close(self) -> None:
        await self._reading.close()
        await self._writing.close()

    async def _append_batch(self, batch: list[Publication], meanwhile: Callable[[], None]) -> dict[str, Appended]:
        """Keep one batch, through retries and what an earlier try had kept; the answer is by event id."""
        deadline = asyncio.get_running_loop().time() + self._timeout
        kept: dict[str, Appended] = {}
        while batch:
            left = self._left(deadline)
            try:
                clash = expects_within(batch)
                code = 0
                if clash is None:
                    answer = await send_batch(self._writing, batch, left, meanwhile=meanwhile)
                    code = error_code(answer)
                    if not code:
                        first = int(answer["seq"]) - len(batch) + 1
                        for position, message in enumerate(batch, first):
                            kept[message.event.id] = Appended(position, message.event.id)
                        return kept
                if code and code != DUPLICATE_IN_BATCH and code not in WRONG_LAST_SEQUENCE:
                    error = error_of(answer, f"a batch of {len(batch)} events")
                    if code not in PASSING:
                        raise error
                else:
                    found = await find_kept(self._writing, self._stream, batch)
                    for event_id, position in found.items():
                        kept[event_id] = Appended(position, event_id, duplicate=True)
                    batch = [message for message in batch if message.event.id not in found]
                    if found:
                        continue
                    if clash is not None:
                        raise conflict(clash, None)
                    if code == DUPLICATE_IN_BATCH:
                        batch, ours = await self._without_claims(batch)
                        kept |= ours
                    else:
                        await self._raise_conflict(batch)
                    error = _moving()
            except BrokerUnavailable as unavailable:
                error = unavailable
            await self._pause(deadline, error)
        return kept

    async def _without_claims(self, batch: list[Publication]) -> tuple[list[Publication], dict[str, Appended]]:
        """For a batch with a message id that the stream knows from another subject: what is left of it to keep.

        An event of ours that stands elsewhere is a duplicate; one whose message id somebody else claimed is renamed.
        """
        known = await known_positions(self._writing, batch)
        ours: dict[str, Appended] = {}
        left: list[Publication] = []
        for message in batch:
            position = known.get(message.event.id)
            if position is None:
                left.append(message)
            elif await is_ours(self._writing, self._stream, position, message):
                ours[message.event.id] = Appended(position, message.event.id, duplicate=True)
            else:
                log.warning("message_id_claimed", event_id=message.event.id, subject=message.subject, position=position)
                left.append(renamed(message))
        return left, ours

    async def _raise_conflict(self, batch: list[Publication]) -> None:
        for message in batch:
            if message.event.expects is not None:
                last = await last_position(self._writing, self._stream, message.event)
                if last != message.event.expects:
                    raise conflict(message.event, last)

    def _left(self, deadline: float) -> float:
        if why := self.hindered():
            raise BrokerUnavailable(why, retryable=False)
        return max(0.001, deadline - asyncio.get_running_loop().time())

    async def _pause(self, deadline: float, error: LedgerError) -> None:
        """Wait before another try; raise the error of the last one when the time is over."""
        if self._left(deadline) <= _PAUSE:
            raise error
        await asyncio.sleep(_PAUSE)
        await self._writing.until_connected(self._left(deadline))


def _moving() -> BrokerUnavailable:
    """The broker named a conflict that is gone when looked at: somebody's append is under way."""
    return BrokerUnavailable("another append to the same entity is under way: retry")


def expects_within(batch: Sequence[Publication]) -> NewEvent | None:
    """The first event that expects a last position although an event before it in the batch takes it.

    The server compares with what was there before the batch, and would let such an event through.
    """
    if all(message.event.expects is None for message in batch):
        return None
    seen: set[tuple[str, str, str]] = set()
    for message in batch:
        about = is_about(message.event)
        if message.event.expects is not None and about in seen:
            return message.event
        seen.add(about)
    return None

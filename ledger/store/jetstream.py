"""JetStream ledger: the ledger of every real node, with the contract of ledger/stream.py."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import orjson
import structlog

from kledger.contract.errors import BrokerUnavailable, LedgerError
from ledger.broker.access import LEDGER_STREAM, BrokerAccess, Role
from ledger.broker.connection import BrokerConnection
from ledger.broker.restored import restored_to
from ledger.broker.stream_setup import check_settings
from ledger.event import Appended, Head, JsonObject, NewEvent, StoredEvent
from ledger.store.atomic_batch import OpenBatch
from ledger.store.batch_under_way import BatchUnderWay, expects_within
from ledger.store.batches_ahead import BatchesAhead, Prepared
from ledger.store.claimed_ids import is_ours, known_positions, renamed
from ledger.store.duplicates import find_stored, last_position
from ledger.store.reader import read_stream
from ledger.store.stale_copies import event_at, nanoseconds
from ledger.store.writable import Writable
from ledger.stream import Change, unchanged
from ledger.wire.publication import (
    DUPLICATE_IN_BATCH,
    WRONG_LAST_SEQUENCE,
    Publication,
    conflict,
    error_code,
    error_of,
    parse_answer,
    publication,
)
from ledger.wire.subjects import history_filter

log = structlog.get_logger(__name__)

APPEND_TIMEOUT = 10.0  # a cluster that lost its leader takes 4-6 s to elect another
OPEN_BATCHES = 8  # a server with default settings allows 50 for each stream, from all writers together
_PAUSE = 0.02


NO_EVENTS = Head(0, 0)


@dataclass(frozen=True, slots=True)
class StreamStatus:
    """The stream's status at the broker: head, number and bytes of messages, the server's version, and settings."""

    head: Head = NO_EVENTS
    messages: int = 0
    bytes: int = 0
    server: str = "unknown"
    settings: JsonObject = field(default_factory=dict)


class JetStreamLedger:
    """A ledger on one JetStream stream, with one connection to write and one to read."""

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
        self._batches = asyncio.Semaphore(OPEN_BATCHES)
        self._writable = Writable(writing)

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
                if error_code(answer):
                    return await self._stored_though_refused(message, answer)
                self._writable.wrote()
                position = int(answer["seq"])
                if not answer.get("duplicate"):
                    return Appended(position, event.id)
                if await is_ours(self._writing, self._stream, position, message):
                    return Appended(position, event.id, duplicate=True)
                if stored := await self._stored_before(message):  # by an earlier try, under another message id
                    return stored
                message = _renamed(message, position)
                error = _moving()
            except BrokerUnavailable as unavailable:
                error = unavailable
            await self._pause(deadline, error)

    async def _stored_though_refused(self, message: Publication, answer: JsonObject) -> Appended:
        """Where an earlier try has stored an event that the broker refuses now. Raises the refusal otherwise."""
        if (code := error_code(answer)) not in WRONG_LAST_SEQUENCE:
            what = f"{message.event.fact.name} of {message.event.entity_id[:80]!r}"
            raise self._writable.met(error_of(answer, what), code)
        if stored := await self._stored_before(message):
            return stored
        await self._raise_conflict([message])
        raise _moving()

    async def _stored_before(self, message: Publication) -> Appended | None:
        event_id = message.event.id
        position = (await find_stored(self._writing, self._stream, [message])).get(event_id)
        return None if position is None else Appended(position, event_id, duplicate=True)

    async def append_many(self, events: Sequence[NewEvent]) -> list[Appended]:
        return await self.append_changed(events, unchanged)

    async def append_changed(self, events: Sequence[NewEvent], change: Change) -> list[Appended]:
        if not events:
            return []
        acknowledged: dict[str, Appended] = {}
        ahead = BatchesAhead(events, change, self._writing, self._batches)
        try:
            while batch := await ahead.take():
                acknowledged |= await self._append_batch(batch, ahead.prepare)
        finally:
            await ahead.close()
        if len(acknowledged) == len(events):
            return [acknowledged[event.id] for event in events]
        seen: set[str] = set()
        result: list[Appended] = []
        for event in events:
            appended = acknowledged[event.id]
            again = event.id in seen  # twice in the caller's list
            result.append(Appended(appended.position, event.id, duplicate=True) if again else appended)
            seen.add(event.id)
        return result

    def read(
        self, start: int = 1, *, follow: bool = False, batch: int = 1_000
    ) -> AsyncGenerator[list[StoredEvent], None]:
        return read_stream(self._reading, self._stream, start, follow=follow, batch=batch)

    async def head(self) -> Head:
        """The current end of the stream."""
        return (await self.status()).head

    async def status(self) -> StreamStatus:
        """The status of the stream and its broker. Raises BrokerUnavailable."""
        info = await self._reading.api(f"STREAM.INFO.{self._stream}")
        if error_code(info):
            raise error_of(info, f"a look at the stream {self._stream}")
        state = info["state"]
        position = int(state["last_seq"])
        stored_ns = nanoseconds(state["last_ts"]) if position else 0
        if 0 < position <= restored_to(info["config"]):  # the broker's time is that of the restore, the header has ours
            last = await event_at(self._reading, self._stream, position, position)
            stored_ns = last.stored_ns if last else stored_ns
        head = Head(position, stored_ns)
        return StreamStatus(
            head, int(state["messages"]), int(state["bytes"]), self._reading.server_version, info["config"]
        )

    def hindered(self) -> str | None:
        """Why the broker cannot store events now, where that is known: an append then fails at once."""
        return self._writing.hindered()

    async def hindrance(self, status: StreamStatus, org: str) -> str | None:
        """Why a stream of this status takes no events of a tenant now, None where it does; stores nothing."""
        return self.hindered() or await self._writable.hindrance(status.settings, org)

    async def restored_to(self) -> int:
        """The last position that was restored from a backup, 0 where none was. Raises BrokerUnavailable."""
        info = await self._reading.api(f"STREAM.INFO.{self._stream}")
        if error_code(info):
            raise error_of(info, f"a look at the stream {self._stream}")
        return restored_to(info["config"])

    async def last_position_of(self, org: str, entity: str, entity_id: str) -> int:
        return await self._position_of({"last_by_subj": history_filter(org, entity, entity_id)})

    async def next_position_of(self, org: str, entity: str, entity_id: str, after: int) -> int:
        return await self._position_of({"seq": after + 1, "next_by_subj": history_filter(org, entity, entity_id)})

    async def _position_of(self, query: JsonObject) -> int:
        """The position of the event that this query of the stream finds, 0 when there is none."""
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

    async def _append_batch(self, prepared: Prepared, meanwhile: Callable[[], Awaitable[None]]) -> dict[str, Appended]:
        """Append one batch, with retries, minus what an earlier try had stored; the acknowledgements by event id."""
        deadline = asyncio.get_running_loop().time() + self._timeout
        batch = BatchUnderWay(prepared.messages, prepared.ids, prepared.sent)
        try:
            while batch.left:
                self._writing.require_storing()
                left = self._left(deadline)
                clash = expects_within(batch.left) if prepared.expecting else None
                try:
                    await self._try_batch(batch, clash, left, meanwhile)
                except BrokerUnavailable as error:
                    batch.sent = None
                    await self._pause(deadline, error)
        finally:
            await batch.give_up()
        return batch.acknowledged

    async def _try_batch(
        self, batch: BatchUnderWay, clash: NewEvent | None, left: float, meanwhile: Callable[[], Awaitable[None]]
    ) -> None:
        """Try once to append what is left of a batch, unless it has a `clash` within (`expects_within`).

        Raises BrokerUnavailable where another try may append it.
        """
        code = 0
        if clash is not None:
            await batch.give_up()
        else:
            answer = await self._commit(batch, left, meanwhile)
            code = error_code(answer)
            if not code:
                self._writable.wrote()
                batch.stored_up_to(int(answer["seq"]))
                return
            if code != DUPLICATE_IN_BATCH and code not in WRONG_LAST_SEQUENCE:
                raise self._writable.met(error_of(answer, f"a batch of {len(batch.left)} events"), code)
        if stored := await find_stored(self._writing, self._stream, batch.left):
            batch.stored_before(stored)
            return
        if clash is not None:
            raise conflict(clash, None)
        if code == DUPLICATE_IN_BATCH:
            await self._settle_known_ids(batch)
        else:
            await self._raise_conflict(batch.left)
        raise _moving()

    async def _commit(self, batch: BatchUnderWay, left: float, meanwhile: Callable[[], Awaitable[None]]) -> JsonObject:
        """Send what is not sent yet, and commit it; the broker's answer."""
        if batch.sent is None:
            batch.sent = OpenBatch(self._writing)
            await batch.sent.add(batch.left)
        sent, batch.sent = batch.sent, None  # what a commit has ended is not given up
        return await sent.commit(left, meanwhile)

    async def _settle_known_ids(self, batch: BatchUnderWay) -> None:
        """Settle the messages of a batch whose message ids the stream knows.

        An event of ours that is stored already is a duplicate. One whose message id another publisher claimed gets a
        new message id.
        """
        known = await known_positions(self._writing, batch.left)
        ours: dict[str, int] = {}
        left: list[Publication] = []
        for message in batch.left:
            position = known.get(message.event.id)
            if position is None:
                left.append(message)
            elif await is_ours(self._writing, self._stream, position, message):
                ours[message.event.id] = position
            else:
                left.append(_renamed(message, position))
        batch.keep(left)
        batch.stored_before(ours)

    async def _raise_conflict(self, batch: list[Publication]) -> None:
        for message in batch:
            if message.event.expects is not None:
                last = await last_position(self._writing, self._stream, message.event)
                if last != message.event.expects:
                    raise conflict(message.event, last)

    def _left(self, deadline: float) -> float:
        return max(0.001, deadline - asyncio.get_running_loop().time())

    async def _pause(self, deadline: float, error: LedgerError) -> None:
        """Wait before the next try; raise the last try's error when the deadline has passed."""
        self._writing.require_storing()
        if self._left(deadline) <= 2 * _PAUSE:  # the last try has to have time for its own answer
            raise error
        await asyncio.sleep(_PAUSE)
        self._writing.require_storing()
        await self._writing.until_connected(self._left(deadline))


def _moving() -> BrokerUnavailable:
    """The error for a conflict that a lookup does not confirm: another append is under way."""
    return BrokerUnavailable("another append to the same entity is under way: retry")


def _renamed(message: Publication, position: int) -> Publication:
    """The event under another message id: somebody else has claimed its own, at this position."""
    log.warning("message_id_claimed", event_id=message.event.id, subject=message.subject, position=position)
    return renamed(message)

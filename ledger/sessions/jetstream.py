"""Stream of words in JetStream: the stream SESSIONS, with one record a subject and no age limit.

An age limit would be of each record: a long session would lose its beginning while it goes on. The node removes whole
sessions instead, which is the one right to remove that a process in daily operation has.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Sequence

import orjson
from nats.aio.msg import Msg

from kledger.contract.errors import BrokerUnavailable
from ledger.broker.access import SESSION_SUBJECTS, SESSIONS_STREAM, BrokerAccess
from ledger.broker.connection import REQUEST_TIMEOUT, BrokerConnection
from ledger.broker.error_codes import NOTHING_STORED
from ledger.broker.stream_setup import ensure
from ledger.event import JsonObject
from ledger.sessions.port import MOST_READ, NewRecord, Record
from ledger.store.atomic_batch import send_batch
from ledger.wire.publication import EXPECTED, PASSING, WRONG_LAST_SEQUENCE, error_code, error_of

WHAT = "keeps the words of sessions"
_PATIENCE = 10.0
_PAUSE = 0.02
_BATCH, _BATCH_BYTES = 1_000, 8 * 1024 * 1024
_DENSE = 4  # a session's own share of the stream, as first assumed when its last records are looked for
_WIDER = 16


def stream_settings(replicas: int = 1) -> JsonObject:
    """The stream's configuration for the broker's API."""
    return {
        "name": SESSIONS_STREAM,
        "description": "What is said in sessions; each is removed as a whole, some time after its last word",
        "subjects": [SESSION_SUBJECTS],
        "retention": "limits",
        "storage": "file",
        "num_replicas": replicas,
        "max_msgs": -1,
        "max_bytes": -1,
        "max_age": 0,
        "max_msgs_per_subject": 1,
        "discard": "old",
        "deny_delete": True,
        "deny_purge": False,
        "allow_direct": True,
        "allow_atomic": True,
    }


async def ensure_sessions_stream(access: BrokerAccess, *, replicas: int = 1) -> None:
    """Create the stream if it does not exist, and check that it loses no words; connects as `admin`.

    Raises BrokerUnavailable, BrokerMisconfigured.
    """
    await ensure(access, SESSIONS_STREAM, stream_settings(replicas), WHAT)


class JetStreamSessions:
    """See `port.SessionStream`. The connection's role must read, publish and purge in the stream: `node`."""

    def __init__(self, connection: BrokerConnection) -> None:
        self._connection = connection

    @classmethod
    async def open(cls, access: BrokerAccess, *, name: str = "kledger-sessions") -> JetStreamSessions:
        """Connect. Raises BrokerUnavailable, BrokerMisconfigured."""
        return cls(await BrokerConnection.open(access, "node", name=name))

    async def last(self, subject: str) -> Record | None:
        """See SessionStream.last."""
        answer = await self._connection.api(f"STREAM.MSG.GET.{SESSIONS_STREAM}", {"last_by_subj": subject})
        code = error_code(answer)
        if code in NOTHING_STORED:
            return None
        if code:
            raise error_of(answer, "a look at the words of sessions")
        message = answer["message"]
        return Record(int(message["seq"]), message["subject"], base64.b64decode(message.get("data") or ""))

    async def put(self, records: Sequence[NewRecord]) -> int | None:
        """See SessionStream.put."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _PATIENCE
        batch = [_Publication(record) for record in records]
        while True:
            with self._connection.storing():
                answer = await send_batch(self._connection, batch, max(0.001, deadline - loop.time()))
                code = error_code(answer)
                if not code:
                    return int(answer["seq"])
                if code in WRONG_LAST_SEQUENCE:
                    return None
                if code not in PASSING or loop.time() + _PAUSE > deadline:
                    raise error_of(answer, f"a batch of {len(records)} records of a session")
            await asyncio.sleep(_PAUSE)

    async def after(self, subjects: str, position: int, limit: int, most: int = MOST_READ) -> list[Record]:
        """See SessionStream.after."""
        found: list[Record] = []
        size = 0
        while len(found) < limit and size < most:
            more, pending = await self._read(subjects, position + 1, min(_BATCH, limit - len(found)), most - size)
            found += more
            size += sum(len(each.body) for each in more)
            if not more or not pending:
                break
            position = more[-1].position
        return found

    async def before(self, subjects: str, position: int, limit: int) -> list[Record]:
        """See SessionStream.before. Reads windows that grow backwards, as the stream has other sessions between."""
        span, widest = limit * _DENSE, position
        while True:
            start = max(1, position - span + 1)
            read = await self.after(subjects, start - 1, span)
            found = [each for each in read if each.position <= position]
            if sum(len(each.body) for each in read) >= MOST_READ and read[-1].position < position:
                widest = span = max(1, span // 2)  # what was read ends before the position
            elif len(found) >= limit or start == 1 or span >= widest:
                return found[max(0, len(found) - limit) :]
            else:
                span = min(span * _WIDER, widest)

    async def purge(self, subjects: str) -> int:
        """See SessionStream.purge."""
        request: JsonObject = {"filter": subjects}
        with self._connection.storing():
            answer = await self._connection.api(f"STREAM.PURGE.{SESSIONS_STREAM}", request, timeout=_PATIENCE)
            if error_code(answer):
                raise error_of(answer, "the removal of a session")
        return int(answer.get("purged", 0))

    async def close(self) -> None:
        """Close the connection."""
        await self._connection.close()

    async def _read(self, subjects: str, start: int, limit: int, most: int) -> tuple[list[Record], int]:
        """Up to `limit` records from position `start` on, and how many more there are. One request, many answers.

        The broker cuts a connection off for which too many bytes wait: what is read at once is bounded.
        """
        if not self._connection.is_connected:
            await self._connection.until_connected(REQUEST_TIMEOUT)
        client = self._connection.client
        inbox = client.new_inbox()
        arrived: asyncio.Queue[Msg | None] = asyncio.Queue()
        forget_loss = self._connection.when_lost(lambda: arrived.put_nowait(None))

        async def receive(message: Msg) -> None:
            arrived.put_nowait(message)

        subscription = await client.subscribe(inbox, cb=receive)
        try:
            most_bytes = min(most, _BATCH_BYTES)
            query = orjson.dumps({"seq": start, "next_by_subj": subjects, "batch": limit, "max_bytes": most_bytes})
            await self._connection.send(f"$JS.API.DIRECT.GET.{SESSIONS_STREAM}", query, reply=inbox)
            return await _collected(arrived)
        finally:
            forget_loss()
            if client.is_connected:
                await subscription.unsubscribe()


class _Publication:
    """A record as `send_batch` takes it."""

    __slots__ = ("body", "headers", "subject")

    def __init__(self, record: NewRecord) -> None:
        self.subject, self.body = record.subject, record.body
        self.headers: dict[str, str] = {} if record.expects is None else {EXPECTED: str(record.expects)}


async def _collected(arrived: asyncio.Queue[Msg | None]) -> tuple[list[Record], int]:
    """The answers to a batched read until its end. Raises BrokerUnavailable."""
    found: list[Record] = []
    try:
        while True:
            async with asyncio.timeout(REQUEST_TIMEOUT):
                message = await arrived.get()
            headers = (message.headers if message is not None else None) or {}
            status = headers.get("Status", "")
            if status == "204":  # the end of the batch
                return found, int(headers.get("Nats-Num-Pending", 0))
            if status == "404":
                return found, 0
            if message is None or status or "Nats-Sequence" not in headers:
                raise BrokerUnavailable(f"the broker did not answer a look at the words of sessions ({status}): retry")
            found.append(Record(int(headers["Nats-Sequence"]), headers["Nats-Subject"], message.data))
    except TimeoutError:
        raise BrokerUnavailable(
            f"the broker did not deliver the words of a session within {REQUEST_TIMEOUT:.1f} s: retry"
        ) from None

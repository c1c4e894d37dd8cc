"""Pull consumer: hands over messages no faster than requested, in order, without gaps.

It uses an ephemeral consumer without acknowledgements, which the server removes by itself, and an inbox of its own. A
request names a bounded number of messages, and each position is compared with the one before. The client library's own
fetch creates a task for each message, and its ordered consumer queues without bound.

What does not come may have been lost on the way, as nothing is delivered twice. So a delivery that has handed over
events ends where one is missing, and only one that begins there says what the stream lacks: the first position that it
brings is the first that is there.
"""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections import deque
from collections.abc import Callable

import nats.errors
import orjson
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription
from nats.js.api import Header

from kledger.contract.errors import BrokerUnavailable, LedgerError, LogGap
from ledger.broker.connection import BrokerConnection
from ledger.broker.foreign_text import bounded_id, subject_text
from ledger.broker.nats_parser import QuickClient, Raw, reader_of
from ledger.broker.restored import MESSAGE_ID, STORED_NS, first_stored, told_in_batch
from ledger.event import JsonObject, StoredEvent
from ledger.wire.publication import MSG_ID, PASSING, error_code, error_of

# Prefetch: two lists, and at most this many messages and bytes.
REQUEST_MESSAGES = 1_000
REQUEST_BYTES = 8 * 1024 * 1024
OPEN_REQUESTS = 4
ARRIVED_BYTES = 32 * 1024 * 1024
_NS = 1_000_000_000
_EXPIRES_S = 30
_HEARTBEAT_S = 5
_SILENCE_S = 2.5 * _HEARTBEAT_S
_FORGET_AFTER_S = 60
# After this much silence (less than a heartbeat), the messages that arrived are handed over, however many the server
# reports as pending: it reports too many on damaged files, and where the consumer began on a replica that lagged.
# Where nothing arrived and the end is known, the server is asked what is missing.
_MORE_COMES_WITHIN_S = 1.0
_message_id_in, _told_ns_in, _told_id_in = (reader_of(name) for name in (MSG_ID, STORED_NS, MESSAGE_ID))


def _size(message: Raw) -> int:
    """What a message takes: its headers may be larger than its body."""
    return len(message.body) + len(message.headers or b"")


class Interrupted(Exception):
    """This delivery has ended; another one may resume where it stopped."""


class EndMissing(Interrupted):
    """The delivering server does not have the last events: they are lost, or its replica lags behind."""

    def __init__(self, gap: LogGap) -> None:
        super().__init__(gap.message)
        self.gap = gap


class Delivery:
    """One consumer and its messages, from after `position` until it is interrupted.

    Up to position `restored_to` the headers of an event have its original time.
    """

    def __init__(
        self,
        connection: BrokerConnection,
        stream: str,
        position: int,
        batch: int,
        *,
        restored_to: int = 0,
    ) -> None:
        self._connection, self._stream = connection, stream
        self._position, self._batch, self._restored_to = position, batch, restored_to
        self._end: int | None = None
        self._consumer = f"read-{uuid.uuid4().hex}"
        self._inbox = ""
        self._client: QuickClient | None = None
        self._subscription: Subscription | None = None
        self._forget_loss: Callable[[], None] = lambda: None
        self._arrived: deque[Raw] = deque()
        self._arrived_bytes = 0
        self._open = 0  # requested and not yet delivered
        self._suspicious = False
        self._begun = False  # whether it has handed over anything
        self._broken: str | None = None
        self._waiter: asyncio.Future[bool] | None = None
        self._last_activity = 0.0
        self.alive = False
        """Whether the server has said that it is there and that nothing comes."""
        self._fields: tuple[int, int, int] | None = None

    async def begin(self, end: int | None) -> None:
        """Create the consumer and request the first messages, up to position `end` where there is one."""
        self._end = end
        self._last_activity = asyncio.get_running_loop().time()
        self._forget_loss = self._connection.when_lost(lambda: self._break("the connection was lost"))
        try:
            client = self._client = self._connection.client
            self._inbox = client.new_inbox()
            self._subscription = await client.subscribe(self._inbox, cb=self._on_status)
            client.hand_over(self._subscription, self._on_event)
            answer = await self._connection.api(
                f"CONSUMER.CREATE.{self._stream}.{self._consumer}", self._consumer_config()
            )
        except (BrokerUnavailable, nats.errors.Error) as error:
            raise Interrupted(str(error)) from error
        code = error_code(answer)
        if code in PASSING:
            raise Interrupted(str(error_of(answer, "a reader")))
        if code:
            raise error_of(answer, f"a reader of the stream {self._stream}")
        await self._demand()

    def _consumer_config(self) -> JsonObject:
        return {
            "stream_name": self._stream,
            "config": {
                "name": self._consumer,
                "deliver_policy": "by_start_sequence",
                "opt_start_seq": self._position + 1,
                "ack_policy": "none",
                "max_deliver": 1,
                "mem_storage": True,
                "num_replicas": 1,
                "inactive_threshold": _FORGET_AFTER_S * _NS,
                "max_waiting": 512,
            },
        }

    async def take(self) -> list[StoredEvent]:
        """The next events, once `batch` of them arrived, the server has no more, or no message comes for a while.

        Raises Interrupted, EndMissing, LogGap.
        """
        arrived = self._arrived
        while True:
            await self._demand()
            if arrived and (len(arrived) >= self._batch or self._nothing_to_wait_for()):
                break
            if self._broken:
                raise Interrupted(self._broken)
            if not await self._wait(_MORE_COMES_WITHIN_S if arrived or self._end is not None else _SILENCE_S):
                if arrived:
                    break
                await self._look_for_loss()
        taken = [arrived.popleft() for _ in range(min(self._batch, len(arrived)))]
        self._arrived_bytes -= sum(map(_size, taken))
        events = self._stored(taken)
        self._suspicious = False
        for expected, event in enumerate(events, self._position + 1):
            if event.position != expected:
                whole = events[: expected - self._position - 1]
                if not whole and not self._begun:
                    raise await self._gap(expected, event.position - 1)
                self._break(reason := f"position {expected} did not come")  # the next delivery begins there
                arrived.clear()
                if not whole:
                    raise Interrupted(reason)
                events = whole
                break
        self._begun = True
        self._position = events[-1].position
        return events

    async def end(self) -> None:
        """Delete the consumer at the server, without waiting for the answer."""
        self._forget_loss()
        if self._subscription is None:
            return
        if self._client is not None:
            self._client.hand_over_no_more(self._subscription)
        with contextlib.suppress(nats.errors.Error, LedgerError, OSError):
            await self._subscription.unsubscribe()
            await self._connection.send(f"$JS.API.CONSUMER.DELETE.{self._stream}.{self._consumer}")

    async def _demand(self) -> None:
        """Request messages until two lists of them are pending or arrived."""
        while self._broken is None:
            size = min(REQUEST_MESSAGES, self._batch)
            if self._end is not None:
                size = min(size, self._end - self._position - len(self._arrived) - self._open)
            ahead = self._open + size
            if size <= 0 or ahead > OPEN_REQUESTS * size or ahead + len(self._arrived) > 2 * self._batch:
                return
            if self._arrived_bytes > ARRIVED_BYTES:
                return
            request = {
                "batch": size,
                "max_bytes": REQUEST_BYTES,
                "expires": _EXPIRES_S * _NS,
                "idle_heartbeat": _HEARTBEAT_S * _NS,
            }
            self._open += size
            try:
                await self._connection.send(
                    f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._consumer}",
                    orjson.dumps(request),
                    reply=self._inbox,
                )
            except BrokerUnavailable as error:
                self._break(str(error))

    def _on_event(self, message: Raw) -> None:
        self._arrived.append(message)
        self._arrived_bytes += _size(message)
        self._open -= 1
        self._wake()

    async def _on_status(self, message: Msg) -> None:
        """Handle a status: a request ended (408, 409), a heartbeat (100), or no such consumer (404, 503)."""
        headers = message.headers or {}
        status, description = headers.get("Status", ""), headers.get(Header.DESCRIPTION, "")
        unserved = headers.get("Nats-Pending-Messages")
        if status in ("408", "409") and unserved is not None:
            self._open = max(0, self._open - int(unserved))
        elif status == "100":
            self.alive = True
        else:
            self._break(f"the server ended a request: {status} {description}")
        self._wake()

    async def _wait(self, seconds: float) -> bool:
        """Wait for a message or a heartbeat; False when none came within `seconds`."""
        loop = asyncio.get_running_loop()
        self._waiter = loop.create_future()
        timer = loop.call_later(seconds, self._wake, False)  # a sixth of the time of asyncio.timeout, for each message
        try:
            came = await self._waiter
        finally:
            self._waiter = None
            timer.cancel()
        now = loop.time()
        if came:
            self._last_activity = now
        elif now - self._last_activity > _SILENCE_S:
            self._break("the server is silent")
        return came

    def _break(self, reason: str) -> None:
        self._broken = self._broken or reason
        self._wake()

    def _wake(self, came: bool = True) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(came)

    async def _look_for_loss(self) -> None:
        """Nothing comes before the end is reached: check whether the last events of the stream are lost."""
        if self._end is None or self._broken:
            return
        try:
            info = await self._connection.api(f"CONSUMER.INFO.{self._stream}.{self._consumer}")
        except BrokerUnavailable as error:
            self._break(str(error))
            return
        if error_code(info):
            self._break(str(error_of(info, "a reader")))
        elif info["num_pending"] == 0 and not self._arrived and self._position < self._end:
            if self._begun:
                self._break(f"position {self._position + 1} did not come")
            elif self._suspicious:  # the same answer twice, a second apart: no message was in flight
                raise EndMissing(await self._gap(self._position + 1, self._end))
            else:
                self._suspicious = True

    async def _gap(self, first: int, last: int) -> LogGap:
        """The error for missing positions, with what the broker reports about them."""
        hint = ""
        with contextlib.suppress(LedgerError):
            info = await self._connection.api(f"STREAM.INFO.{self._stream}")
            begins = int(info["state"]["first_seq"])
            if begins > first:
                hint = f"; the broker no longer has what is before position {begins}"
        what = f"position {first} is" if first == last else f"positions {first} to {last} are"
        return LogGap(
            f"{what} missing in the stream {self._stream}{hint}: nothing is folded past a gap. Stop the node, and "
            "bring the events back from a backup that has them (kledger repair)",
            first=first,
            last=last,
        )

    def _nothing_to_wait_for(self) -> bool:
        """True when no message is pending, or the server had no more when it sent the last one."""
        if self._broken or self._open <= 0:
            return True
        reply = self._arrived[-1].reply
        return reply.split(b".")[self._layout(reply)[2]] == b"0"

    def _stored(self, messages: list[Raw]) -> list[StoredEvent]:
        sequence, moment, _ = self._layout(messages[0].reply)
        restored_to = self._restored_to
        events = []
        for subject, reply, body, headers in messages:
            tokens = reply.split(b".")
            position = int(tokens[sequence])
            if position <= restored_to and (plainly := told_in_batch(headers)) is not None:
                stored_ns, message_id = plainly
            else:
                stored_ns, message_id = int(tokens[moment]), bounded_id(_message_id_in(headers) or "")
                if position <= restored_to:
                    told = _told_ns_in(headers), _told_id_in(headers)
                    stored_ns, message_id = first_stored(stored_ns, message_id, *told)
            events.append(StoredEvent(position, stored_ns, subject_text(subject), body, message_id))
        return events

    def _layout(self, reply: bytes) -> tuple[int, int, int]:
        """The token numbers of position, time and pending count in a message's reply subject.

        `$JS.ACK.<stream>.<consumer>.<delivered>.<position>.<nth>.<time>.<pending>`, or with a domain and an
        account before the stream.
        """
        if self._fields is None:
            shift = 0 if reply.count(b".") == 8 else 2
            self._fields = (5 + shift, 7 + shift, 8 + shift)
        return self._fields

"""Limits of a connection: how much it may take before it asks anything, and how long it may hold its place.

uvicorn parses requests with httptools and bounds neither the bytes of a request's head nor the time of a client. This
subclass, handed to uvicorn by its `http` setting, does: what is too long is answered with 431, what is too slow with
408, and closed; a connection that asks for nothing is closed; one more than the node takes costs the place of whichever
has waited longest without asking. Where the bodies of all requests together are more than the node holds, the largest
that still comes gives way (429). All of it happens before a request has a token. Where all answers together that are
not taken are more than that, the connection that has been taking one for longest is closed.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, RequestResponseCycle

from kledger.contract.errors import LedgerError, RateLimited
from producers.access.limits import Limits
from producers.http.connections.held_bodies import HeldBodies, HeldBody
from producers.http.connections.joined import Joined
from producers.http.connections.one_protocol import OneProtocol
from producers.http.errors import HeadTooLarge, RequestTooSlow, UnreadableRequest, answer

SLOWEST = 1_000
"""Bytes a second that a client has to send of a body, or take of an answer, once its first seconds are over."""
_PER_HEADER = 4  # the colon, the space and the line break
_AGAIN = 5.0  # seconds after which a body that gave way may be sent again
_HELD = "kledger.held_body"
"""Where the body of a request stands in its ASGI scope."""


class _TooLarge(Exception):
    """Ends the parsing of a head."""


class BoundedConnection(OneProtocol):
    """One connection of a client. `limits` and `bodies` are set by `bounded`."""

    limits: Limits
    bodies: HeldBodies

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.app = _answering(self.app)
        self.held = HeldBody(self.bodies)
        """The body of the request that is read."""
        self.waits_since = self.loop.time()
        """When it began to wait for its next request, or for the body of this one."""
        self._reading_head = True
        self._has_begun = False  # the head that is read has begun
        self._heads = 0  # that were read whole
        self._head_bytes = 0  # of the head, as far as it is parsed
        self._unparsed = 0  # of a head that is longer than what came at once
        self._body_bytes = 0
        self._oversized = False
        self._refused: LedgerError | None = None  # what it is told once it has the answers that come first
        self._deadline: asyncio.TimerHandle | None = None
        self._stalled: asyncio.TimerHandle | None = None
        self._takes_since = 0.0
        """When it began to take the answer of which there is more than it takes; 0 where there is none."""
        self._answering: RequestResponseCycle | None = None  # uvicorn's `cycle` is the last request that was read

    @property
    def is_waiting(self) -> bool:
        """No request of it is under way."""
        return self.cycle is None or self.cycle.response_complete

    @property
    def is_sending(self) -> bool:
        """The body of its only request has not come yet: somebody may make it last for hours."""
        return not self.is_waiting and not self._reading_head and not self.pipeline

    # The connection

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's
        """Take its place, or that of one that waits longer."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections and not self._make_room():
            self.end()
            return
        self._set_deadline(self.limits.head_seconds)

    def _make_room(self) -> bool:
        others = [other for other in self.connections if isinstance(other, BoundedConnection) and other is not self]
        if waiting := [other for other in others if other.is_waiting]:
            min(waiting, key=_since).end()
            return True
        if sending := [other for other in others if other.is_sending]:
            min(sending, key=_since).give_way()
            return True
        return False

    def give_way(self) -> None:
        """Refuse the request whose body does not come."""
        self.connections.discard(self)
        self._refuse(RequestTooSlow("others wait for a connection, and the body did not come: send it again, at once"))

    def _hold_fewer(self) -> None:
        """Refuse the largest of the bodies that still come, where all of them together are too many bytes."""
        if not self.bodies.are_too_many:
            return
        sending = [other for other in self.connections if isinstance(other, BoundedConnection) and other.is_sending]
        if sending:
            max(sending, key=_size).give_back()

    def give_back(self) -> None:
        """Refuse the request whose body is the largest of those that still come."""
        self.held.answered()
        self._refuse(
            RateLimited(
                f"the bodies of all requests have more than {self.bodies.most:,} bytes, which this node holds at once, "
                "and this one is the largest: send it again in a while",
                retry_after=_AGAIN,
            )
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadlines with the connection."""
        self._clear_deadline()
        self._clear_stalled()
        super().connection_lost(exc)
        self._answer_nobody()

    def end(self) -> None:
        """Close the connection now; who does not read has no claim to the rest."""
        self.connections.discard(self)
        self._answer_nobody()
        self.transport.abort()

    def _answer_nobody(self) -> None:
        """Drop what was asked in advance, and tell the request that is being answered that nobody is there."""
        self.pipeline.clear()
        if self._answering is not None and not self._answering.response_complete:
            self._answering.disconnected = True
            self._answering.message_event.set()

    # What comes in

    def data_received(self, data: bytes) -> None:
        """Parse what came; a head that goes on for longer than it may is refused before it is kept."""
        if self.transport.is_closing() or self._refused is not None:
            return
        was_reading_head, heads = self._reading_head, self._heads
        super().data_received(data)
        has_no_head = was_reading_head and self._heads == heads
        if self._deadline is None and (self._has_begun or has_no_head):  # most requests come whole, and need none
            self._set_deadline(self.limits.head_seconds if self._reading_head else self.limits.body_seconds)
        if has_no_head and not self.transport.is_closing():
            self._unparsed += len(data)
            if self._unparsed > self.limits.head:
                self._oversized = True
                self.send_400_response("")

    def on_message_begin(self) -> None:
        """A request begins."""
        self._reading_head = self._has_begun = True
        self._head_bytes = self._unparsed = self._body_bytes = 0
        super().on_message_begin()
        self.held = HeldBody(self.bodies)
        cast(Scope, self.scope)[_HELD] = self.held

    def on_url(self, url: bytes) -> None:
        """Part of the address."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header; a field behind the body counts for nothing, as a proxy in front looks at the head alone."""
        self._count(len(name) + len(value) + _PER_HEADER)
        if self._reading_head:
            super().on_header(name, value)

    def on_head(self) -> None:
        """The head is there: the app may be asked, and the body has its own time."""
        before = self.cycle
        super().on_head()
        self._reading_head = False
        self._heads += 1
        self.waits_since = self.loop.time()
        self._clear_deadline()
        if self.cycle is not before:
            self.cycle.transport = Joined(self.transport)  # type: ignore[assignment]  # all that a cycle uses of one
        if not self.pipeline:
            self._answering = self.cycle

    def on_body(self, body: bytes) -> None:
        """Part of the body."""
        self._body_bytes += len(body)
        super().on_body(body)
        self.held.grow(len(body))
        if self.bodies.are_too_many:
            self.loop.call_soon(self._hold_fewer)  # it may be this one, of which the parser has more at hand

    def on_end(self) -> None:
        """The whole request is there; how long its answer takes is the node's own affair."""
        self._clear_deadline()
        self._reading_head, self._has_begun = True, False
        self._head_bytes = self._unparsed = 0
        super().on_end()

    def _count(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self.limits.head:
            self._oversized = True
            raise _TooLarge  # the parser stops, and uvicorn answers as for any request that it cannot read

    # What goes out

    def on_response_complete(self) -> None:
        """The answer is written; the connection waits for its next request."""
        self._send_held()
        self.waits_since = self.loop.time()
        if self.pipeline:
            self._answering = self.pipeline[-1][0]
        elif self._refused is not None and not self.transport.is_closing():
            self._close_with(self._refused)
        super().on_response_complete()
        if self.transport.is_closing() and self.transport.get_write_buffer_size():
            self.pause_writing()

    def _send_held(self) -> None:
        """Send the head of the answer that is under way, where no body follows it."""
        joined: object = None if self._answering is None else self._answering.transport
        if isinstance(joined, Joined):
            joined.send_held()

    def send_400_response(self, msg: str) -> None:
        """Say, as every error of the node is said, why a request is not read."""
        if self._oversized:
            self._refuse(
                HeadTooLarge(
                    f"the request's address and headers have more than {self.limits.head:,} bytes, which is the limit "
                    "here: send long texts in the body, as POST /api/memory/recall takes a message"
                )
            )
        else:
            self._refuse(
                UnreadableRequest(
                    f"this is no HTTP request that the node can read: {msg} In an address every byte outside ASCII is "
                    "%XX, which curl -G --data-urlencode makes of it"
                )
            )

    def _refuse(self, error: LedgerError) -> None:
        """Refuse the request that is being read; those before it are answered first."""
        if self.transport.is_closing():
            return
        if self.pipeline and not self._reading_head:
            self.pipeline.popleft()  # it has been put there with its head
        elif self.is_waiting or not self._reading_head:
            self._close_with(error)
            return
        self._refused = error

    def _close_with(self, error: LedgerError) -> None:
        self._send_held()
        if self.is_waiting or not self.cycle.response_started:
            said = answer(error)
            head = [b"%s: %s\r\n" % each for each in [*said.raw_headers, (b"connection", b"close")]]
            self.transport.write(b"".join([STATUS_LINE[said.status_code], *head, b"\r\n", said.body]))
        self.transport.close()
        if self.transport.get_write_buffer_size():
            self.pause_writing()

    def pause_writing(self) -> None:
        """The client takes less than is written for it: it has a while to go on."""
        super().pause_writing()
        self._clear_stalled()
        self._watch_writing()
        self._takes_since = self._takes_since or self.loop.time()
        self.loop.call_soon(self._leave_fewer)  # the socket takes what it can first

    def _leave_fewer(self) -> None:
        """Close the connections that take the longest, where all that is not taken yet is too many bytes."""
        others = [other for other in self.connections if isinstance(other, BoundedConnection) and other._takes_since]
        left = {other: other.transport.get_write_buffer_size() for other in others}
        too_many = sum(left.values()) - self.limits.answers
        for slowest in sorted(others, key=_takes_since):
            if too_many <= 0:
                break
            too_many -= left[slowest]
            slowest.end()

    def resume_writing(self) -> None:
        """It took enough."""
        self._clear_stalled()
        self._takes_since = 0.0
        super().resume_writing()

    def timeout_keep_alive_handler(self) -> None:
        """Nothing was asked for a while after an answer; one that was not taken by now has its own time."""
        super().timeout_keep_alive_handler()
        if self.transport.get_write_buffer_size():
            self.pause_writing()

    def _watch_writing(self) -> None:
        left = self.transport.get_write_buffer_size()
        seconds = self.limits.body_seconds

        def look() -> None:
            if self.transport.get_write_buffer_size() > left - seconds * SLOWEST:
                self.end()
            else:
                self._watch_writing()

        self._stalled = self.loop.call_later(seconds, look)

    # Time

    def _set_deadline(self, seconds: float) -> None:
        self._clear_deadline()
        self._deadline = self.loop.call_later(seconds, self._too_slow)

    def _too_slow(self) -> None:
        self._deadline = None
        if self._reading_head:
            if not self.is_waiting:  # the request before this one is still being answered
                self._set_deadline(self.limits.head_seconds)
                return
            if not self._has_begun:  # it asked for nothing, and is owed no answer
                self.transport.close()
                return
        else:
            arrived, self._body_bytes = self._body_bytes, 0
            # Where reading is paused it is the node that does not take the rest.
            if self.flow.read_paused or arrived >= self.limits.body_seconds * SLOWEST:
                self._set_deadline(self.limits.body_seconds)
                return
        part = "head" if self._reading_head else "body"
        self._refuse(RequestTooSlow(f"the {part} of the request did not come in time: send it at once"))

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _clear_stalled(self) -> None:
        if self._stalled is not None:
            self._stalled.cancel()
            self._stalled = None


def _answering(app: ASGIApp) -> ASGIApp:
    """The app, at whose end the body of a request is no longer held."""

    async def answering(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await app(scope, receive, send)
        finally:
            scope[_HELD].answered()

    return answering


def _size(connection: BoundedConnection) -> int:
    return connection.held.size


def _since(connection: BoundedConnection) -> float:
    return connection.waits_since


def _takes_since(connection: BoundedConnection) -> float:
    return connection._takes_since


def bounded(limits: Limits) -> type[BoundedConnection]:
    """The protocol class for uvicorn, with the limits of this node."""
    return type("BoundedConnection", (BoundedConnection,), {"limits": limits, "bodies": HeldBodies(limits.bodies)})

"""Carries requests with the HTTP client of the standard library: plain HTTP, and the caller's thread waits.

It loads in a fraction of the time of httpx, and needs no event loop. Each thread that waits has a connection of its
own; one that is free is used again.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable
from http.client import (
    BadStatusLine,
    HTTPConnection,
    HTTPException,
    HTTPResponse,
    IncompleteRead,
    RemoteDisconnected,
)
from typing import NamedTuple
from urllib.parse import quote, urlencode, urlsplit

from kledger.client.transport.exchange import (
    POSITION,
    ConnectionBroken,
    ConnectionTimedOut,
    NoSuchAddress,
    NotConnected,
    NotHttp,
    R,
    Reply,
    ReplyTimedOut,
    Request,
)
from kledger.client.transport.nearby import DEFAULT_PORT

LONGEST_TARGET = 65_536  # characters; as httpx has it
KEPT_IDLE = 4.0  # seconds; a node closes what is idle for five, and what is sent just then is lost
SHORTEST = 1e-6  # seconds
PIECE = 1 << 20  # bytes read at once; room for a whole body is taken before one of them has come
_AN_ANSWER = 200  # below it stands what is said before one, which a node says nothing of
_WITHOUT_BODY = (204, 304)
_IN_A_PATH = "/%:@!$&'()*+,;=~"


class _Idle(NamedTuple):
    connection: HTTPConnection
    since: float
    process: int
    """The one that opened it: another one that was forked from it would read its answers."""


class SocketTransport:
    """Requests over sockets; safe to share between threads."""

    def __init__(self, address: str, token: str | None, *, timeout: float, connect: float) -> None:
        """`timeout` is seconds of silence that end an attempt, `connect` seconds for a connection."""
        parts = urlsplit(address)
        self._host, self._port = parts.hostname or "", parts.port or DEFAULT_PORT
        self._root, self._prefix = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        self._authorised = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout, self._connect = timeout, _patience_of_a_socket(connect)
        self._idle: list[_Idle] = []  # the one that is free for longest first
        self._closed = 0  # times
        self._lock = threading.Lock()

    def turn(self) -> contextlib.AbstractAsyncContextManager[object]:
        """Waits for nothing: each thread asks when it likes."""
        return contextlib.nullcontext()

    async def exchange(self, request: Request) -> Reply:
        """Send one request and return its answer. Raises NoReply."""
        target = self._target(request)
        closed = self._closed
        connection, whole = self._taken() or self._connected(), False
        connection.sock.settimeout(_patience_of_a_socket(self._timeout + request.waits))
        try:
            # What is refused before it is whole, as it is too large, is answered while it is still being sent.
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                connection.request(request.method, target, request.content, {**self._authorised, **request.headers})
                whole = True
            with connection.getresponse() as answer:
                content = _body(answer)
        except TimeoutError as error:
            connection.close()
            raise ReplyTimedOut(str(error)) from error
        except (OSError, HTTPException) as error:
            connection.close()
            if isinstance(error, BadStatusLine) and not isinstance(error, RemoteDisconnected):
                raise NotHttp("what it says is no HTTP") from error
            raise ConnectionBroken(str(error) or type(error).__name__) from error
        except BaseException:  # what is interrupted halfway cannot be used again
            connection.close()
            raise
        self._give_back(connection, whole and not answer.will_close, closed)
        return Reply(answer.status, content, self._root + target, answer.headers.get(POSITION, ""))

    def _target(self, request: Request) -> str:
        query = urlencode({name: _in_a_query(value) for name, value in request.params.items()}, doseq=True)
        target = quote(self._prefix + request.path, safe=_IN_A_PATH) + (f"?{query}" if query else "")
        if len(target) > LONGEST_TARGET:
            raise NoSuchAddress("URL too long")
        return target

    def _taken(self) -> HTTPConnection | None:
        """A free connection that is still open."""
        while True:
            with self._lock:
                if not self._idle:
                    return None
                connection, since, process = self._idle.pop()
            if process == os.getpid() and time.monotonic() - since < KEPT_IDLE and _is_open(connection):
                return connection
            connection.close()

    def _connected(self) -> HTTPConnection:
        connection = HTTPConnection(self._host, self._port, timeout=self._connect)
        try:
            connection.connect()
        except TimeoutError as error:
            raise ConnectionTimedOut(str(error)) from error
        except UnicodeError as error:  # of a name that no host can have
            raise NotConnected(str(error)) from socket.gaierror(socket.EAI_NONAME, str(error))
        except OSError as error:
            raise NotConnected(str(error)) from error
        return connection

    def _give_back(self, connection: HTTPConnection, usable: bool, closed: int) -> None:
        now = time.monotonic()
        with self._lock:
            kept = usable and closed == self._closed
            # A newer one is taken before an older one: what a burst has left would stay here for good.
            stale = [each.connection for each in self._idle if now - each.since >= KEPT_IDLE]
            self._idle = self._idle[len(stale) :]
            if kept:
                self._idle.append(_Idle(connection, now, os.getpid()))
        for each in stale if kept else [connection, *stale]:
            each.close()

    async def pause(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)  # noqa: ASYNC251 - no event loop runs here

    async def beside(self, work: Callable[[], R]) -> R:
        """Do it, as the thread is the caller's own."""
        return work()

    async def close(self) -> None:
        """Close the free connections, and each of the others after its answer."""
        with self._lock:
            idle, self._idle = self._idle, []
            self._closed += 1
        for each in idle:
            each.connection.close()


def _patience_of_a_socket(seconds: float) -> float | None:
    """Seconds as a socket takes them: no time at all would be its word for never waiting, and it has a longest."""
    return max(seconds, SHORTEST) if seconds < threading.TIMEOUT_MAX else None


def _in_a_query(value: object) -> object:
    if isinstance(value, list | tuple):
        return [_in_a_query(each) for each in value]
    return str(value).lower() if isinstance(value, bool) else value


def _body(answer: HTTPResponse) -> bytes:
    """The body of an answer. Raises HTTPException where it breaks off, or what came is no answer.

    To the standard library a head that breaks off is one that ends there, and what follows is a body of any length.
    """
    if answer.status in _WITHOUT_BODY:
        return b""
    length = answer.headers.get("Content-Length", "")
    chunked = answer.headers.get("Transfer-Encoding", "").lower() == "chunked"
    if answer.status < _AN_ANSWER or not (chunked or (length.isascii() and length.isdecimal())):
        raise HTTPException("the answer does not tell where it ends")
    body = bytearray()
    try:
        announced = 0 if chunked else int(length)
        while piece := answer.read(PIECE):
            body += piece
    except ValueError as error:  # of a number below zero, or of thousands of digits
        raise HTTPException("the answer has no length that can be read") from error
    if not chunked and len(body) != announced:
        raise IncompleteRead(bytes(body), announced - len(body))
    return bytes(body)


def _is_open(connection: HTTPConnection) -> bool:
    """Whether the server has neither closed the connection nor sent what nobody asked for."""
    sock: socket.socket | None = connection.sock
    if sock is None:
        return False
    patience = sock.gettimeout()
    sock.setblocking(False)
    try:
        sock.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        sock.settimeout(patience)
        return True
    except OSError:
        return False
    return False

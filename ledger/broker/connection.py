"""Broker connection: one NATS connection whose requests never hang.

Each request ends with its answer, or with a LedgerError when the connection is lost, nobody listens, the user has no
permission, or the time is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import nats
import nats.errors
import orjson
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg

from kledger.contract.errors import BrokerMisconfigured, BrokerUnavailable
from ledger.broker.access import BrokerAccess, Role
from ledger.broker.frames import Outgoing
from ledger.broker.nats_parser import NoTls, QuickClient
from ledger.event import JsonObject
from ledger.runtime.log_once import Outage

log = structlog.get_logger(__name__)

CONNECT_TIMEOUT = 5.0
REQUEST_TIMEOUT = 5.0
_RECONNECT_WAIT = 0.1
_ASKS = "$JS."
"""What subjects begin with at which nothing is kept."""
_PENDING_BYTES = 8 * 1024 * 1024
_CLOSES = 3
_CLOSING_S = 1.0


class Pending(NamedTuple):
    """A request that was published."""

    token: str
    answer: asyncio.Future[Msg]


class BrokerConnection:
    """A connection that reconnects by itself."""

    def __init__(self, access: BrokerAccess, role: Role, *, name: str) -> None:
        self._access, self._role, self._name = access, role, name
        self._client = QuickClient()
        self._prefix = ""
        self._counter = 0
        self._waiting: dict[str, tuple[str, asyncio.Future[Msg]]] = {}
        self._usable = asyncio.Event()
        self._opening = asyncio.Lock()
        self._closed = False
        self._hindrance: str | None = None  # what keeps a lost connection from coming back, where the broker shows it
        self._lost_callbacks: set[Callable[[], None]] = set()

    @classmethod
    async def open(
        cls, access: BrokerAccess, role: Role, *, name: str = "kledger", timeout: float = CONNECT_TIMEOUT
    ) -> BrokerConnection:
        """Connect as a role. Raises BrokerUnavailable (no answer), BrokerMisconfigured (refused)."""
        connection = cls(access, role, name=name)
        await connection._connect(timeout)
        return connection

    @property
    def client(self) -> QuickClient:
        """The underlying client, for subscriptions. It is replaced when the broker had closed it for good."""
        return self._client

    @property
    def server_version(self) -> str:
        """The version of the server that this connection is connected to."""
        version = self.client.connected_server_version
        return f"{version.major}.{version.minor}.{version.patch}"

    @property
    def address(self) -> str:
        return self._access.url

    @property
    def is_connected(self) -> bool:
        return self._client.is_connected

    def when_lost(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Register a callback for each loss of the connection; returns a function that removes it."""
        self._lost_callbacks.add(callback)
        return lambda: self._lost_callbacks.discard(callback)

    def hindered(self) -> str | None:
        """Why the broker cannot store anything now, where that is known."""
        return self._access.hindered()

    @contextlib.contextmanager
    def storing(self) -> Iterator[None]:
        """Around what has the broker store or remove something: where it is known that it cannot, that is the error.

        Raises BrokerUnavailable.
        """
        self.require_storing()
        try:
            yield
        except (BrokerUnavailable, BrokerMisconfigured):
            self.require_storing()
            raise

    def require_storing(self) -> None:
        """Raise BrokerUnavailable where the broker is known not to store anything now."""
        if (reason := self._access.hindered()) is not None:
            raise BrokerUnavailable(reason, retryable=False)

    async def until_connected(self, timeout: float) -> None:
        """Wait for a usable connection. Raises BrokerUnavailable after `timeout` seconds."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        while not self._client.is_connected:
            if self._closed:
                raise BrokerUnavailable(f"this connection to the broker at {self.address} is closed")
            if self._client.is_closed:  # the library gave up after a protocol error: open a new client
                async with self._opening:
                    if self._client.is_closed:
                        await self._connect(max(_RECONNECT_WAIT, deadline - loop.time()))
                continue
            try:
                async with asyncio.timeout_at(deadline):
                    await self._usable.wait()
                    # The client knows of a loss a little before its callback runs: let it run.
                    await asyncio.sleep(_RECONNECT_WAIT / 10)
            except TimeoutError:
                why = self._hindrance or "is it running?"
                raise BrokerUnavailable(
                    f"no connection to the broker at {self.address} for {timeout:.1f} s: {why}"
                ) from None

    async def ask(
        self,
        subject: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        lines: str = "",
        *,
        at_once: bool = False,
    ) -> Pending:
        """Publish a request, whose answer is waited for by `answer`, or given up by `give_up`.

        `lines` are further lines of its headers (ledger/broker/frames.py). It is written `at_once`, or with what else
        this turn of the event loop publishes; a request while no other waits for its answer is written at once. The
        caller sets the timeout. Raises BrokerUnavailable when there is no connection now, and for what is to be kept
        where the broker is known to have no room for it.
        """
        if not subject.startswith(_ASKS):
            self.require_storing()
        at_once = at_once or not self._waiting
        self._counter += 1
        token = str(self._counter)
        pending = Pending(token, asyncio.get_running_loop().create_future())
        self._waiting[token] = (subject, pending.answer)
        try:
            await self.send(subject, body, headers, lines, reply=self._prefix + token, at_once=at_once)
        except BaseException:
            self.give_up(pending)
            raise
        return pending

    def give_up(self, pending: Pending) -> None:
        """Wait for this answer no longer."""
        self._waiting.pop(pending.token, None)
        pending.answer.cancel()

    async def send(
        self,
        subject: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        lines: str = "",
        *,
        reply: str = "",
        at_once: bool = False,
    ) -> None:
        """Publish without waiting for an answer, `at_once` or with what this turn of the event loop publishes besides.

        Raises BrokerUnavailable when there is no connection now.
        """
        if not self._client.is_connected:
            raise BrokerUnavailable(f"the connection to the broker at {self.address} is lost: retry")
        try:
            if headers is None:
                await self._client.publish(subject, body, reply=reply)
            else:
                await self._client.publish_together([(subject, body, headers, lines)], reply, at_once=at_once)
        except nats.errors.Error as error:
            raise BrokerUnavailable(f"could not publish to {subject[:200]}: {error}") from error

    async def publish_together(self, messages: Sequence[Outgoing]) -> None:
        """Publish messages in one piece; none where the connection is lost. Raises BrokerUnavailable."""
        if not self.is_connected:
            raise BrokerUnavailable(f"the connection to the broker at {self.address} is lost: retry")
        try:
            await self._client.publish_together(messages)
        except nats.errors.Error as error:
            raise BrokerUnavailable(f"could not publish {len(messages)} messages: {error}") from error

    async def request(
        self,
        subject: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        timeout: float = REQUEST_TIMEOUT,
    ) -> Msg:
        """Publish a request and wait for its answer. Raises BrokerUnavailable or BrokerMisconfigured."""
        if not self._client.is_connected:
            if not subject.startswith(_ASKS):  # a server without room is started again when there is some
                self.require_storing()
            await self.until_connected(timeout)
        return await self.answer(await self.ask(subject, body, headers), subject, timeout)

    async def answer(self, pending: Pending, subject: str, timeout: float) -> Msg:
        """Wait for the answer to a request of `ask`. Raises BrokerUnavailable or BrokerMisconfigured."""
        timer = asyncio.get_running_loop().call_later(timeout, _too_late, pending.answer)
        try:
            return await pending.answer
        except TimeoutError:
            self.require_storing()
            raise BrokerUnavailable(
                f"the broker at {self.address} did not answer {subject[:200]} within {timeout:.1f} s"
            ) from None
        finally:
            timer.cancel()
            self.give_up(pending)

    async def api(
        self, subject: str, document: JsonObject | None = None, *, timeout: float = REQUEST_TIMEOUT
    ) -> JsonObject:
        """Call the JetStream API below `$JS.API.`; the answer may hold an `error`.

        Raises BrokerUnavailable or BrokerMisconfigured.
        """
        body = b"" if document is None else orjson.dumps(document)
        reply = await self.request(f"$JS.API.{subject}", body, timeout=timeout)
        answer: JsonObject = orjson.loads(reply.data)
        return answer

    async def close(self) -> None:
        """Close for good; requests under way end with BrokerUnavailable."""
        self._closed = True
        _outage(self.address).forgotten(id(self))
        self._fail_all(BrokerUnavailable("the connection to the broker was closed"))
        await close_client(self._client)

    async def _connect(self, timeout: float) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + timeout
        insecure: str | None = None
        while True:
            client = QuickClient()
            try:
                async with asyncio.timeout_at(deadline):
                    await _or_given_up(self._try(client))
                await self._use(client)
                return
            except (TimeoutError, OSError, nats.errors.Error) as error:
                await close_client(client)
                if "authorization violation" in str(error).lower():
                    raise BrokerMisconfigured(
                        f"the broker at {self.address} refuses the credentials of role {self._role!r}"
                    ) from error
                insecure = self._insecure(error) or insecure
                others = len(self._access.urls) > 1  # one of which may be meant; waiting mends no certificate
                if loop.time() + _RECONNECT_WAIT >= deadline or (insecure is not None and not others):
                    if insecure is not None:
                        raise BrokerMisconfigured(insecure) from error
                    raise BrokerUnavailable(
                        f"no broker answers at {self.address} within {timeout:.1f} s: is it running?"
                    ) from error
            except BaseException:  # cancelled: nobody else knows of its socket
                await close_client(client)
                raise
            await asyncio.sleep(_RECONNECT_WAIT)

    def _insecure(self, error: Exception) -> str | None:
        """Why nothing is said to a broker that may not be the one that is meant; None where that is not the reason."""
        if isinstance(error, NoTls):
            return (
                f"the broker at {self.address} speaks no TLS, which tls:// asks for: nothing was sent to it. Set up "
                "TLS there, or write nats:// where the way to it is safe without"
            )
        if isinstance(error, ssl.SSLCertVerificationError):
            return (
                f"the certificate of the broker at {self.address} is not trusted here: {error.verify_message}. It has "
                "to name the host of the address; SSL_CERT_FILE names a file with the authority that signed it"
            )
        return None

    async def _use(self, client: QuickClient) -> None:
        if self._closed:  # meanwhile: whoever waits is told
            await close_client(client)
            return
        # We retry the first connection ourselves, for a clear error; from now on the client reconnects by itself.
        client.options.update(allow_reconnect=True, max_reconnect_attempts=-1)
        prefix = client.new_inbox() + "."
        answers = await client.subscribe(f"{prefix}*", cb=self._on_answer)
        client.hand_over_answers(answers, self._on_plain_answer)
        self._client, self._prefix, self._hindrance = client, prefix, None
        self._usable.set()
        _outage(self.address).over(id(self), address=self.address)

    async def _try(self, client: Client) -> None:
        credentials = self._access.credentials(self._role)
        await client.connect(
            self._access.urls,
            name=f"{self._name}-{self._role}",
            user=credentials[0] if credentials else None,
            password=credentials[1] if credentials else None,
            inbox_prefix=self._access.inbox_prefix(self._role),
            error_cb=self._on_error,
            disconnected_cb=self._on_disconnected,
            reconnected_cb=self._on_reconnected,
            closed_cb=self._on_closed,
            allow_reconnect=False,
            max_reconnect_attempts=1,
            reconnect_time_wait=_RECONNECT_WAIT,  # type: ignore[arg-type]  # annotated int, used as float
            connect_timeout=2,
            ping_interval=20,
            pending_size=_PENDING_BYTES,
            flush_timeout=REQUEST_TIMEOUT,
        )

    async def _on_answer(self, msg: Msg) -> None:
        waiting = self._waiting.pop(msg.subject[len(self._prefix) :], None)
        if waiting is None:
            return
        subject, future = waiting
        if future.done():
            return
        # An event that is looked at alone has its publisher's headers, and the server's beside them.
        status = msg.headers is not None and "Nats-Sequence" not in msg.headers and msg.headers.get("Status")
        if status == "503" and not msg.data:
            future.set_exception(
                BrokerUnavailable(
                    f"nothing at the broker {self.address} answers {subject[:200]}: JetStream is not ready, "
                    "or the stream is not set up"
                )
            )
        else:
            future.set_result(msg)

    def _on_plain_answer(self, subject: bytes, body: bytes) -> None:
        waiting = self._waiting.pop(subject[len(self._prefix) :].decode(), None)
        if waiting is not None and not waiting[1].done():
            waiting[1].set_result(Msg(self._client, subject.decode(), data=body))

    async def _on_error(self, error: Exception) -> None:
        text = str(error)
        if "permissions violation" not in text:
            log.debug("broker_connection_error", role=self._role, error=repr(error))
            if not self._client.is_connected:
                self._hindrance = self._insecure(error)
            return
        fault = BrokerMisconfigured(f"the broker user of role {self._role!r} may not do this: {text[:300]}")
        log.error("broker_refused", role=self._role, error=text[:300])
        # The client passes the text in lower case; it has the subject, but not the request.
        for subject, future in list(self._waiting.values()):
            if not future.done() and (f'"{subject.lower()}"' in text or "subscription" in text):
                future.set_exception(fault)

    async def _on_disconnected(self) -> None:
        self._usable.clear()
        self._fail_all(BrokerUnavailable(f"the connection to the broker at {self.address} was lost: retry"))
        for callback in list(self._lost_callbacks):
            callback()
        if self._prefix and not self._closed:  # what was never there is not lost
            _outage(self.address).met(who=id(self), address=self.address)

    async def _on_reconnected(self) -> None:
        self._hindrance = None
        self._usable.set()
        _outage(self.address).over(id(self), address=self.address)

    async def _on_closed(self) -> None:
        self._usable.clear()
        self._fail_all(BrokerUnavailable(f"the broker at {self.address} closed the connection: retry"))

    def _fail_all(self, error: BrokerUnavailable) -> None:
        for _, future in list(self._waiting.values()):
            if not future.done():
                future.set_exception(error)
                future.add_done_callback(lambda f: f.exception())  # retrieved, in case the caller gave up


def _too_late(future: asyncio.Future[Msg]) -> None:
    if not future.done():
        future.set_exception(TimeoutError())


@cache
def _outage(address: str) -> Outage:  # noqa: ARG001  # the key of the cache
    """The outage of one broker, shared by the connections of this process, which are all lost at once."""
    return Outage("broker_connection_lost", "broker_connection_back", log)


async def _or_given_up(opening: Coroutine[Any, Any, None]) -> None:
    """Open, and end as soon as this is cancelled.

    Until Python 3.12 `asyncio.wait_for`, by which the library opens, loses a cancellation that comes at the moment at
    which the socket is there, and goes on: so it is told until it has ended.
    """
    task = asyncio.ensure_future(opening)
    try:
        await asyncio.wait({task})
    finally:
        while not task.done():
            task.cancel()
            await asyncio.wait({task}, timeout=_RECONNECT_WAIT)
        if not task.cancelled():
            task.exception()  # read, so that nobody is told of it where this was cancelled
    task.result()


async def close_client(client: Client) -> None:
    """Close a client for good, whatever state its connection is in.

    A client that is just reconnecting raises a cancellation of its own, which is dropped; a cancellation of the caller
    is raised. One whose reconnection ends at that moment is connected again, and is closed once more. Unsent data to a
    broker that is gone is lost, which uvloop reports with a RuntimeError. After a TLS handshake that failed the library
    waits for ever for the end of a connection that nobody tells of: no longer than a second here.
    """
    for _ in range(_CLOSES):
        try:
            async with asyncio.timeout(_CLOSING_S):
                await client.close()
        except (TimeoutError, nats.errors.Error, OSError, RuntimeError):
            pass
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
        if client.is_closed:
            return

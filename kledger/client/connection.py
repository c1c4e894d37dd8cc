"""The connection to a node: how a request is sent, and sent again where that is safe.

One connection is shared by a client and all clients derived from it. It repeats what is safe to repeat
(reads, and writes, which carry an Idempotency-Key each) while the connection is broken or the node cannot write:
a restart of the node is waited out. It remembers the highest position that it wrote, for reads to see.
"""

from __future__ import annotations

import math
import os
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

from kledger import DEFAULT_URL
from kledger.client.arguments import require_number, require_seconds, require_text
from kledger.client.refusals import error_of_body
from kledger.client.transport.exchange import (
    ConnectionBroken,
    ConnectionTimedOut,
    NoReply,
    NoSuchAddress,
    NotConnected,
    Reply,
    ReplyTimedOut,
    Request,
    Transport,
)
from kledger.client.transport.json_body import encoded
from kledger.client.transport.unreachable import (
    is_refused,
    may_be_done,
    no_address,
    silent,
    to_start,
    wrong_address,
    wrong_path,
)
from kledger.contract.addresses import is_http_address, told_address
from kledger.contract.errors import (
    BrokerUnavailable,
    InvalidPayload,
    LedgerError,
    NodeUnreachable,
    RateLimited,
    Unauthenticated,
)
from kledger.contract.json_text import MOST_POSITION

RETRY_FOR = 30.0  # seconds; a node that stops and starts again is back long before
FIRST_CONTACT = 3.0  # seconds; where nothing has answered yet there may be no node at all
RETRY_FOR_VARIABLE = "KLEDGER_RETRY_FOR"
CONNECT_TIMEOUT = 5.0  # seconds; an address that is nobody's may answer nothing at all
FIRST_PAUSE = 0.1  # seconds; doubled each time
LONGEST_PAUSE = 2.0
IDEMPOTENCY_KEY = "Idempotency-Key"  # which each change has, and no question
UNKNOWN_ROUTE = "unknown_route"  # what a node answers where it has nothing
LONGEST_WAIT = 30.0  # what a node may ask for before the next try
TOKEN_VARIABLE = "KLEDGER_TOKEN"
URL_VARIABLE = "KLEDGER_URL"
_WAITS = ("wait", "patience")  # in which a request says how long the node may wait: for a position, for a model
_CHANGING = threading.Lock()  # of every connection, so that one can be copied and pickled; it is held for a moment


class _Failed(NamedTuple):
    """A try that failed; `again` where sending the same again is safe, and may be answered; `taken` where the node may
    have done what it was asked."""

    error: LedgerError
    again: bool
    taken: bool = False


@dataclass
class Connection:
    """The way to one node: its address, timeouts and retries, and what was written through it."""

    address: str = field(default=DEFAULT_URL, repr=False)  # which may have a password in it
    timeout: float = 30.0  # seconds of silence that end an attempt
    retries: int | None = None  # how often something is sent again at most; None: as the time allows
    read_your_writes: bool = True
    token: str | None = field(default=None, repr=False)  # None: the environment's KLEDGER_TOKEN, if it has one
    written: int = 0  # the highest position acknowledged through this connection, 0 before any
    retry_for: float | None = None  # seconds; None: KLEDGER_RETRY_FOR, else RETRY_FOR once something has answered
    answered: bool = False  # a node has answered here before
    transport: Transport | None = field(default=None, repr=False)  # None: one of its own, when first needed
    blocking: bool = False  # its own is over sockets, in which the caller's thread waits
    waits: Callable[[str], None] | None = field(default=None, repr=False)  # told once, before it first tries again
    closed: bool = False  # by whoever had it, for good

    def __post_init__(self) -> None:
        if not isinstance(self.address, str) or not is_http_address(self.address):
            stated = told_address(self.address) if isinstance(self.address, str) else self.address
            raise NodeUnreachable(
                f"{stated!r} is no address of a node: write http://HOST:PORT, for example {DEFAULT_URL}", url=stated
            )
        require_seconds("timeout", self.timeout)
        if self.retries is not None:
            require_number("retries", self.retries)
        if self.token is not None:
            require_text("token", self.token)
        self.token = token_of(self.token)
        self.retry_for = patience_of(self.retry_for)

    def __getstate__(self) -> dict[str, Any]:
        """What a copy has, and one in another process: all but the sockets, of which it opens its own."""
        return vars(self) | {"transport": None}

    @property
    def told_address(self) -> str:
        """Its address as messages tell it."""
        return told_address(self.address)

    @property
    def carrier(self) -> Transport:
        """What carries its requests. Raises RuntimeError where it is closed."""
        with _CHANGING:  # of two that threads opened at once, one would never be closed
            self.require_open()
            if self.transport is None:
                self.transport = self._opened()
            return self.transport

    def require_open(self) -> None:
        """Raise RuntimeError where it is closed: that is a mistake of the program, and no failure of a node."""
        if self.closed:
            raise RuntimeError(
                "this client is closed, by close, aclose or the end of its with block, as is every client derived from "
                "it: ask within the block, or make another client"
            )

    def _opened(self) -> Transport:
        times = {"timeout": self.timeout, "connect": self._connect_timeout()}
        if self.blocking:  # a program needs one of the two, and httpx takes longer to load than all the rest
            from kledger.client.transport.over_sockets import SocketTransport

            return SocketTransport(self.address, self.token, **times)
        from kledger.client.transport.over_httpx import HttpxTransport

        return HttpxTransport(self.address, self.token, **times)

    def saw(self, position: object) -> None:
        """Remember a position that a write was acknowledged at; what no log can have is none."""
        if isinstance(position, int) and position <= MOST_POSITION:
            with _CHANGING:  # between a look and a write of one thread, another may have written more
                self.written = max(self.written, position)

    async def send(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, Any],
        headers: Mapping[str, str],
        body: object = None,
        repeatable: bool,
        also: int | None = None,
    ) -> Reply:
        """Send one request and return its answer below 400 (or with the status `also`).

        Raises NodeUnreachable when nothing answers, InvalidPayload for what no address can hold, else the exception of
        `kledger.contract.errors` whose code the node states. `repeatable` requests are sent again, after a growing
        pause, while the connection is broken or the node cannot write; whatever else is refused is refused at once, and
        so is an address where nothing has answered yet and nothing will: of a host that nobody knows, without TLS.
        """
        content = encoded(body)
        sent = {**headers, "Content-Type": "application/json"} if content is not None else dict(headers)
        request = Request(method, path, params, sent, content, _waits_in(params, body))
        changes = not repeatable or IDEMPOTENCY_KEY in headers
        began, taken = time.monotonic(), False
        for attempt in count():
            came = time.monotonic()
            async with self.carrier.turn():
                began += time.monotonic() - came  # the time until its turn is not the node's
                outcome = await self._try(request, repeatable, also)
            if isinstance(outcome, Reply):
                return outcome
            taken = taken or outcome.taken
            pause = max(_pause(attempt), _asked_to_wait(outcome.error))
            too_late = time.monotonic() + pause > began + self._patience()
            if not outcome.again or attempt == self.retries or too_late:
                unanswered = changes and taken and isinstance(outcome.error, NodeUnreachable)
                raise may_be_done(outcome.error) if unanswered else outcome.error
            if self.waits is not None:
                told, self.waits = self.waits, None
                told(f"{outcome.error.message.partition(';')[0]}; trying for {self._patience():g} seconds")
            await self.carrier.pause(pause)
        raise AssertionError("the loop above returns or raises")

    async def _try(self, request: Request, repeatable: bool, also: int | None) -> Reply | _Failed:
        """Send a request once. Raises what no later try can mend."""
        try:
            answer = await self.carrier.exchange(request)
        except ConnectionTimedOut as error:
            reason = f"no connection within {self._connect_timeout():g} s"
            return _Failed(self._unreachable(reason, error), again=True)  # it was surely not handled
        except ReplyTimedOut as error:
            return _Failed(self._silent(self.timeout + request.waits, error), again=False, taken=True)
        except ConnectionBroken as error:
            wrong = None if self.answered else wrong_address(error, self.told_address)
            # Without a connection it was surely not handled. Who states a time waits for a name as well, as for
            # that of a container that is about to start.
            again = (repeatable or isinstance(error, NotConnected)) and (wrong is None or self.retry_for is not None)
            taken = wrong is None and not isinstance(error, NotConnected)
            return _Failed(self._unreachable(str(error), error, wrong), again, taken)
        except NoSuchAddress as error:
            raise InvalidPayload(no_address(request.path, request.params, error)) from error
        except NoReply as error:
            raise self._unreachable(str(error), error) from error
        self.answered = True
        if answer.status < 400 or answer.status == also:
            return answer
        refusal = self._refusal(answer)
        # What came too soon was not looked at: sending it later repeats nothing.
        return _Failed(refusal, isinstance(refusal, RateLimited) or (repeatable and _passes(refusal)))

    def _refusal(self, answer: Reply) -> LedgerError:
        refusal = error_of_body(answer.status, answer.content, answer.url)
        no_node = isinstance(refusal, NodeUnreachable) or refusal.code == UNKNOWN_ROUTE
        if no_node and (said := wrong_path(self.told_address)) is not None:
            return NodeUnreachable(said, url=self.told_address, status=answer.status)
        return refusal

    def _connect_timeout(self) -> float:
        return min(self.timeout, CONNECT_TIMEOUT)

    def _patience(self) -> float:
        """Seconds in which something is sent again."""
        if self.retry_for is not None:
            return self.retry_for
        return RETRY_FOR if self.answered else FIRST_CONTACT

    def _unreachable(self, reason: str, cause: Exception, wrong: str | None = None) -> LedgerError:
        if is_refused(cause):
            reason = "connection refused"
        todo = wrong or f"({reason}); {to_start(self.told_address)}"
        error = NodeUnreachable(f"no node answers at {self.told_address} {todo}", url=self.told_address)
        error.__cause__ = cause
        return error

    def _silent(self, seconds: float, cause: Exception) -> LedgerError:
        error = NodeUnreachable(silent(self.told_address, seconds), url=self.told_address)
        error.__cause__ = cause
        return error

    async def close(self) -> None:
        """Close the sockets, for good; what is under way is answered. Closing it again does nothing."""
        with _CHANGING:
            self.closed = True
            transport, self.transport = self.transport, None
        if transport is not None:
            await transport.close()


def address_of(stated: str | None) -> str:
    """The address of a node: the one stated, else KLEDGER_URL's, else that of a node on this machine."""
    if stated is not None:
        return stated
    return os.environ.get(URL_VARIABLE, "").strip() or DEFAULT_URL


def token_of(stated: str | None) -> str | None:
    """The token to send: the one stated, else KLEDGER_TOKEN's. Raises Unauthenticated for what can be none."""
    token = (os.environ.get(TOKEN_VARIABLE, "") if stated is None else stated).strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise Unauthenticated("the token has characters that no token has: copy it whole, as it was printed")
    return token or None


def _passes(failure: Exception) -> bool:
    """Whether the node cannot write for a while; a full disk, say, waits for somebody to do something."""
    return isinstance(failure, BrokerUnavailable) and failure.details.get("retryable") is not False


def patience_of(stated: float | None) -> float | None:
    """The seconds stated, else KLEDGER_RETRY_FOR's, None without either. Raises InvalidPayload for what is no time."""
    text = os.environ.get(RETRY_FOR_VARIABLE, "").strip() if stated is None else str(stated)
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise InvalidPayload(
            f"{text[:40]!r} is no number of seconds to try again for ({RETRY_FOR_VARIABLE}): write for example 30, or 0"
        )
    return seconds


def _asked_to_wait(failure: Exception) -> float:
    """Seconds that the node asked for, where it did."""
    stated = failure.details.get("retry_after") if isinstance(failure, RateLimited) else None
    return min(float(stated), LONGEST_WAIT) if isinstance(stated, int | float) else 0.0


def _waits_in(*stated: object) -> float:
    """Seconds that the node is asked to wait before it answers, by parameters and a body."""
    asked = [each[name] for each in stated if isinstance(each, Mapping) for name in _WAITS if name in each]
    # What is no time is the node's to refuse.
    return sum(float(each) for each in asked if isinstance(each, int | float) and 0 < each < math.inf)


def _pause(attempt: int) -> float:
    # Half of it by chance, so that many clients do not come back in step.
    longest = min(FIRST_PAUSE * 2.0**attempt, LONGEST_PAUSE)
    return longest * (0.5 + random.random() / 2)

"""What a client needs of whatever carries its requests: an answer, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, NamedTuple, Protocol, TypeVar

R = TypeVar("R")
POSITION = "X-Ledger-Position"


class Request(NamedTuple):
    """One request to a node. The `path` begins with a slash and is percent-encoded, the `params` are not."""

    method: str
    path: str
    params: Mapping[str, Any]
    headers: Mapping[str, str]
    content: bytes | None
    waits: float = 0.0
    """Seconds of silence that it asks for: a node that waits for something is given them beside the usual ones."""


class Reply(NamedTuple):
    """What a node answered, whatever its status."""

    status: int
    content: bytes
    url: str
    position: str
    """The header X-Ledger-Position, empty where it is not there."""


class NoReply(Exception):
    """No answer came; the text says why. What made it fail is its cause."""


class NoSuchAddress(NoReply):
    """What no address can hold: nothing was sent."""


class ConnectionTimedOut(NoReply):
    """There was no connection in time: the request was surely not handled."""


class ReplyTimedOut(NoReply):
    """There was no answer in time: the request may have been handled."""


class ConnectionBroken(NoReply):
    """The connection broke: the request may have been handled."""


class NotConnected(ConnectionBroken):
    """There was no connection: the request was surely not handled."""


class NotHttp(ConnectionBroken):
    """What answers there speaks something else: the address is that of another program."""


class Transport(Protocol):
    """Carries requests to one node."""

    def turn(self) -> AbstractAsyncContextManager[object]:
        """Waits until a request may begin, and is held until it has ended: of many at once some have to wait."""

    async def exchange(self, request: Request) -> Reply:
        """Send one request and return its answer. Raises NoReply."""

    async def pause(self, seconds: float) -> None:
        """Wait."""

    async def beside(self, work: Callable[[], R]) -> R:
        """Do what blocks, such as reading a file, and return its result."""

    async def close(self) -> None:
        """Close the sockets."""

"""Carries requests with httpx: on an event loop, with TLS, and through the proxies of the environment."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import SplitResult, urlsplit

import httpx

from kledger.client.transport.exchange import (
    POSITION,
    ConnectionBroken,
    ConnectionTimedOut,
    NoReply,
    NoSuchAddress,
    NotConnected,
    NotHttp,
    R,
    Reply,
    ReplyTimedOut,
    Request,
)
from kledger.contract.addresses import LOOPBACK
from kledger.contract.errors import NodeUnreachable

_GREETS_WITHIN = 0.3  # seconds
_NO_HEAD = "without sending a response"
AT_ONCE = 100
"""Requests that an event loop has under way, each on a connection; others wait for their turn before httpx has them.
Its pool looks at each connection for each that waits whenever one comes or goes, and ends a wait after `timeout`."""


class _Way(NamedTuple):
    """What carries the requests of one event loop, and how many of them may begin."""

    http: httpx.AsyncClient
    turns: asyncio.Semaphore


class HttpxTransport:
    """Requests over clients of httpx, one for each event loop; what has to wait gives the loop to others."""

    def __init__(self, address: str, token: str | None, *, timeout: float, connect: float) -> None:
        """`timeout` is seconds of silence that end an attempt, `connect` seconds for a connection."""
        self._address, self._token = address, token
        self._timeout, self._connect = timeout, connect
        self._given: httpx.AsyncClient | None = None
        self._of: dict[asyncio.AbstractEventLoop, _Way] = {}

    @classmethod
    def over(cls, http: httpx.AsyncClient) -> HttpxTransport:
        """A transport over a client that is there already."""
        transport = cls(str(http.base_url), None, timeout=0.0, connect=0.0)
        transport._given = http
        return transport

    @property
    def http(self) -> httpx.AsyncClient:
        """The client of the event loop that runs, or the one that was there already."""
        return self._given or self._way().http

    def _way(self) -> _Way:
        """The way of the event loop that runs: what another one opened, as an `asyncio.run` before, is its own."""
        loop = asyncio.get_running_loop()
        if loop not in self._of:
            running = {each: way for each, way in list(self._of.items()) if not each.is_closed()}
            self._of = running | {loop: _Way(self._given or self._opened(), asyncio.Semaphore(AT_ONCE))}
        return self._of[loop]

    def _opened(self) -> httpx.AsyncClient:
        parts = urlsplit(self._address)
        try:
            return self._client_of(parts)
        except (ImportError, ValueError, OSError) as error:  # a proxy or certificates of the environment
            raise NodeUnreachable(
                f"{self._address} cannot be asked with the proxy or the certificates that the environment names "
                f"({error}): correct ALL_PROXY, HTTP_PROXY, HTTPS_PROXY or SSL_CERT_FILE, or unset it"
            ) from error

    def _client_of(self, parts: SplitResult) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=self._address.rstrip("/"),
            headers={"Authorization": f"Bearer {self._token}"} if self._token else {},
            timeout=httpx.Timeout(self._timeout, connect=self._connect),
            # A proxy cannot reach the caller's own loopback, whatever the environment says.
            trust_env=parts.hostname not in LOOPBACK,
            # Reading the certificate store takes longer than a whole search: only where it is used.
            verify=parts.scheme == "https",
        )

    def turn(self) -> contextlib.AbstractAsyncContextManager[object]:
        """Waits until fewer than AT_ONCE requests of the event loop are under way."""
        return self._way().turns

    async def exchange(self, request: Request) -> Reply:
        """Send one request and return its answer. Raises NoReply."""
        try:
            http = self._way().http
            answer = await http.request(
                request.method,
                request.path,
                params=dict(request.params),
                headers=request.headers,
                content=request.content,
                timeout=_lengthened(http.timeout, request.waits),
            )
        except httpx.ConnectTimeout as error:
            raise ConnectionTimedOut(str(error)) from error
        except httpx.TimeoutException as error:
            raise ReplyTimedOut(str(error)) from error
        except httpx.ConnectError as error:
            raise NotConnected(_reason(error)) from error
        except httpx.RemoteProtocolError as error:
            if str(error).startswith("illegal") or (_NO_HEAD in str(error) and await self._greets()):
                raise NotHttp("what it says is no HTTP") from error
            raise ConnectionBroken(_reason(error)) from error
        except httpx.NetworkError as error:
            raise ConnectionBroken(_reason(error)) from error
        except httpx.InvalidURL as error:
            raise NoSuchAddress(str(error)) from error
        except httpx.HTTPError as error:
            raise NoReply(_reason(error)) from error
        del answer.stream  # which holds the answer that holds it, and both bodies until garbage is looked for
        return Reply(answer.status_code, answer.content, str(answer.url), answer.headers.get(POSITION, ""))

    async def _greets(self) -> bool:
        """Whether what is there speaks before it is asked, as a broker does and no HTTP: httpx does not tell a line
        that is cut off from none."""
        parts = urlsplit(self._address)
        if self._given is not None or parts.scheme != "http":
            return False
        greeting = b""
        with contextlib.suppress(OSError, TimeoutError, ValueError):
            async with asyncio.timeout(_GREETS_WITHIN):
                reader, writer = await asyncio.open_connection(parts.hostname, parts.port or 80)
                with contextlib.closing(writer):
                    greeting = await reader.read(1)
                await writer.wait_closed()
        return bool(greeting)

    async def pause(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    async def beside(self, work: Callable[[], R]) -> R:
        """Do what blocks on a thread."""
        return await asyncio.to_thread(work)

    async def close(self) -> None:
        """Close the sockets of the event loop that runs; those of another one end with it."""
        way = self._of.pop(asyncio.get_running_loop(), None)
        http = self._given or (way and way.http)
        if http is not None:
            await http.aclose()


def _lengthened(usual: httpx.Timeout, waits: float) -> httpx.Timeout:
    """The usual times, with an answer that may come so many seconds later."""
    read = usual.read if usual.read is None else usual.read + waits
    return httpx.Timeout(connect=usual.connect, read=read, write=usual.write, pool=usual.pool)


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__

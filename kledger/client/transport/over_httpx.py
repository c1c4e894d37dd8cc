"""Carries requests with httpx: on an event loop, with TLS, and through the proxies of the environment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from urllib.parse import urlsplit

import httpx

from kledger.client.transport.exchange import (
    POSITION,
    ConnectionBroken,
    ConnectionTimedOut,
    NoReply,
    NoSuchAddress,
    NotConnected,
    R,
    Reply,
    ReplyTimedOut,
    Request,
)
from kledger.client.transport.nearby import LOOPBACK


class HttpxTransport:
    """Requests over a client of httpx; what has to wait gives the event loop to others."""

    def __init__(self, address: str, token: str | None, *, timeout: float, connect: float) -> None:
        """`timeout` is seconds of silence that end an attempt, `connect` seconds for a connection."""
        parts = urlsplit(address)
        self.http = httpx.AsyncClient(
            base_url=address.rstrip("/"),
            headers={"Authorization": f"Bearer {token}"} if token else {},
            timeout=httpx.Timeout(timeout, connect=connect),
            # A proxy cannot reach the caller's own loopback, whatever the environment says.
            trust_env=parts.hostname not in LOOPBACK,
            # Reading the certificate store takes longer than a whole search: only where it is used.
            verify=parts.scheme == "https",
        )

    @classmethod
    def over(cls, http: httpx.AsyncClient) -> HttpxTransport:
        """A transport over a client that is there already."""
        transport = cls.__new__(cls)
        transport.http = http
        return transport

    async def exchange(self, request: Request) -> Reply:
        """Send one request and return its answer. Raises NoReply."""
        try:
            answer = await self.http.request(
                request.method,
                request.path,
                params=dict(request.params),
                headers=request.headers,
                content=request.content,
            )
        except httpx.ConnectTimeout as error:
            raise ConnectionTimedOut(str(error)) from error
        except httpx.TimeoutException as error:
            raise ReplyTimedOut(str(error)) from error
        except httpx.ConnectError as error:
            raise NotConnected(_reason(error)) from error
        except (httpx.NetworkError, httpx.RemoteProtocolError) as error:
            raise ConnectionBroken(_reason(error)) from error
        except httpx.InvalidURL as error:
            raise NoSuchAddress(str(error)) from error
        except httpx.HTTPError as error:
            raise NoReply(_reason(error)) from error
        return Reply(answer.status_code, answer.content, str(answer.url), answer.headers.get(POSITION, ""))

    async def pause(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

    async def beside(self, work: Callable[[], R]) -> R:
        """Do what blocks on a thread."""
        return await asyncio.to_thread(work)

    async def close(self) -> None:
        """Close the sockets."""
        await self.http.aclose()


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__

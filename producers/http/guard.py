"""What happens to every request before and after its route? It is let in, measured, and never left unanswered.

A node on loopback takes requests without tokens, so a web page must not reach it through the browser of
whoever runs it: names that are not loopback's (DNS rebinding) and other sites' origins are refused.
"""

from __future__ import annotations

import time
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ledger.errors import LedgerError, NotOwner
from producers.http import errors
from producers.http.metrics import Metrics

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_NO_ROUTE = "none"


class Guard:
    """The outermost layer of the app."""

    def __init__(self, app: ASGIApp, metrics: Metrics, on_loopback: bool) -> None:
        self.app = app
        self.metrics = metrics
        self.on_loopback = on_loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        # Matched as it was sent: %2F in an id is no path separator, and the route decodes it.
        scope["path"] = scope["raw_path"].decode("latin-1").partition("?")[0]
        began = time.perf_counter()
        status = 0

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            self._let_in(scope)
            await self.app(scope, receive, answer)
        except LedgerError as error:
            await errors.answer(error)(scope, receive, answer)
        except Exception as error:
            if status:  # the answer is on its way: the connection is cut, and the server logs why
                raise
            await errors.failed(error, f"{scope['method']} {scope['path']}")(scope, receive, answer)
        finally:
            route = getattr(scope.get("route"), "path", _NO_ROUTE)
            method = scope["method"] if route != _NO_ROUTE else ""
            self.metrics.requests.labels(method, route, str(status)).inc()
            self.metrics.seconds.labels(method, route).observe(time.perf_counter() - began)

    def _let_in(self, scope: Scope) -> None:
        host = origin = b""
        for name, value in scope["headers"]:
            if name == b"host":
                host = value
            elif name == b"origin":
                origin = value
        at = host.decode("latin-1").lower()
        if self.on_loopback and _name(f"//{at}") not in LOOPBACK:
            raise NotOwner(
                f"this node serves its own machine alone, and was asked as {at!r}: use http://127.0.0.1 with its port"
            )
        if origin and urlsplit(origin.decode("latin-1").lower()).netloc != at:
            raise NotOwner("a page of another site may not use this node: ask it from a program of your own")


def _name(address: str) -> str | None:
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None

"""MCP at a node: Streamable HTTP at /mcp, whose tools call the node's own HTTP interface in process.

Requests are stateless: there are no sessions and no open streams, so that any node behind a proxy may answer, and
nothing is held when a node stops. Identity headers are forwarded to HTTP with each call, so that tokens, identities,
limits and errors are those of HTTP; one tool call counts as one request.

The SDK is loaded by the first request, in a thread: it takes a tenth of a node's memory and of its start, and many nodes
are never asked over MCP.
"""

from __future__ import annotations

import asyncio
import importlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from hashlib import sha256
from typing import TYPE_CHECKING

import httpx
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from kledger.client.connection import Connection
from kledger.client.wire import Lineage, Wire
from producers.access.limits import Limits
from producers.access.principal import ADMITTED_KEY, SCOPE_KEY
from producers.http.identity import LINEAGE, SEEN, caller_of, lineage_of, seen_by
from producers.http.known_parameters import refuse_others

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from producers.mcp.server import Call

PATH = "/mcp"
HERE = "http://127.0.0.1"  # a host that every node accepts as its own; no socket is opened to it
_REMEMBERED = 1_000  # callers whose last write is known; the next read of an evicted one may be slightly stale
_OURS = b"x-ledger-"
_FORWARDED = (b"authorization", b"accept-language")
_PER_CALL = {name.encode() for name in (*LINEAGE, SEEN)}


class McpAtNode:
    """The endpoint of one app. `path` is its name in the metrics."""

    path = PATH

    def __init__(self, app: ASGIApp, limits: Limits, counted: Callable[[str, str], None]) -> None:
        self._app = app
        self._limits = limits
        self._counted = counted
        self._serving: asyncio.Task[None] | None = None
        self._manager: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._stopping = asyncio.Event()
        self._connections: OrderedDict[bytes, Connection] = OrderedDict()

    @property
    def route(self) -> Route:
        """The route of this endpoint."""
        return Route(PATH, self, include_in_schema=False)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve while the block runs."""
        try:
            yield
        finally:
            self._stopping.set()
            if self._serving is not None:
                await self._serving

    async def _started(self) -> StreamableHTTPSessionManager:
        """What answers, started by the first request."""
        if self._manager is None:
            self._manager = asyncio.get_running_loop().create_future()
            self._serving = asyncio.create_task(self._serve(self._manager), name="mcp")
        return await asyncio.shield(self._manager)  # whoever hangs up does not take it from the others that wait

    async def _serve(self, started: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        """Run it until the app stops: one task begins and ends it, as its task group demands."""
        try:
            await asyncio.to_thread(importlib.import_module, "producers.mcp.streamable")
            from producers.mcp.streamable import create_manager

            # The largest tool call is a batch; each HTTP endpoint enforces its own limit as well.
            manager = create_manager(self._wire_of, self._counted, self._limits.batch_body)
        except Exception as error:  # of an installation that is not whole: each request says so
            started.set_exception(error)
            return
        async with manager.run():
            started.set_result(manager)
            await self._stopping.wait()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One MCP request. Only POST: there are neither streams to GET nor sessions to DELETE."""
        scope["route"] = self
        refuse_others(Request(scope), ())
        if scope["method"] != "POST":
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)
            return
        manager = await self._started()
        await manager.handle_request(scope, receive, send)

    async def _wire_of(self, call: Call) -> Wire:
        from producers.mcp.server import NOBODY_NAMED

        request = call.request
        assert isinstance(request, Request)  # this server is called over HTTP alone
        caller = await caller_of(request)
        if caller.is_operator and request.scope.get(SCOPE_KEY) is None:
            caller = NOBODY_NAMED
        lineage = await lineage_of(request)
        connection = self._connection_of(request)
        connection.saw(seen_by(request))
        return Wire(connection, caller, Lineage(**asdict(lineage)))

    def _connection_of(self, request: Request) -> Connection:
        """The connection of a caller: it sends the identity headers, and remembers the last write for the next read."""
        headers = [
            (name, value)
            for name, value in request.headers.raw
            if name in _FORWARDED or (name.startswith(_OURS) and name not in _PER_CALL)
        ]
        key = sha256(b"\n".join(name + b":" + value for name, value in sorted(headers))).digest()
        connection = self._connections.get(key)
        if connection is None:
            client = httpx.AsyncClient(
                transport=httpx.ASGITransport(self._inside), base_url=HERE, headers=headers, trust_env=False
            )
            connection = self._connections[key] = Connection(HERE, token="", retries=3, http=client)
            if len(self._connections) > _REMEMBERED:
                self._connections.popitem(last=False)  # nothing to close: it has no socket
        self._connections.move_to_end(key)
        return connection

    async def _inside(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[ADMITTED_KEY] = True
        await self._app(scope, receive, send)

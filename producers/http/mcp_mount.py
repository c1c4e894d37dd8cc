"""MCP at a node: Streamable HTTP at /mcp.

Requests are stateless: there are no sessions and no open streams, so that any node behind a proxy may answer, and
nothing is held when a node stops. One tool call counts as one request.

What answers is imported by the first request, in a thread: with the SDK it is a tenth of a node's memory and of its
start, and most nodes are asked over HTTP alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from producers.access.limits import Limits
from producers.http.known_parameters import refuse_others

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH = "/mcp"
INTERFACE = "producers.http.mcp_interface"


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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One MCP request. Only POST: there are neither streams to GET nor sessions to DELETE."""
        scope["route"] = self
        refuse_others(Request(scope), ())
        if scope["method"] != "POST":
            await Response(status_code=405, headers={"Allow": "POST"})(scope, receive, send)
            return
        manager = await self._started()
        await manager.handle_request(scope, receive, send)

    async def _started(self) -> StreamableHTTPSessionManager:
        """What answers, started by the first request."""
        if self._manager is None:
            self._manager = asyncio.get_running_loop().create_future()
            self._serving = asyncio.create_task(self._serve(self._manager), name="mcp")
        return await asyncio.shield(self._manager)  # whoever hangs up does not take it from the others that wait

    async def _serve(self, started: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        """Run it until the app stops, in one task from its beginning to its end, as its task group has to be."""
        try:
            await asyncio.to_thread(import_module, INTERFACE)
            from producers.http.mcp_interface import create_manager

            # The largest tool call is a batch; each HTTP endpoint enforces its own limit as well.
            manager = create_manager(self._app, self._counted, self._limits.batch_body)
        except Exception as error:  # an installation that lacks a part: every request says so
            started.set_exception(error)
            return
        async with manager.run():
            started.set_result(manager)
            await self._stopping.wait()

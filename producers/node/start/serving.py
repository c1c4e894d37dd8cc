"""Serves the HTTP interface of a node on a socket that it has bound before."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import uvicorn
from starlette.types import ASGIApp

from producers.access.limits import Limits
from producers.http.connections.bounded import bounded
from producers.node.address import cannot_listen

_DRAIN_SECONDS = 10


@asynccontextmanager
async def serving(
    app: ASGIApp, sock: socket.socket, limits: Limits, end_streams: Callable[[], None]
) -> AsyncIterator[str]:
    """Serve the app, and tell its address; requests in progress are answered before the context ends.

    `end_streams` is called first: some answers would not end by themselves.
    """
    host, port = sock.getsockname()[:2]
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=bounded(limits),
        ws="none",
        proxy_headers=False,  # callers are identified by token, never by address
        server_header=False,
        timeout_keep_alive=limits.idle_seconds,
        log_config=None,
        access_log=False,
        lifespan="on",  # MCP at /mcp needs it
        timeout_graceful_shutdown=_DRAIN_SECONDS,
    )
    try:
        sock.listen(config.backlog)
    except OSError as error:  # somebody listened there meanwhile
        raise cannot_listen(host, port, error) from error
    server = uvicorn.Server(config)
    # `serve` would handle signals, as the node does
    answering = asyncio.create_task(server._serve([sock]), name="http")
    try:
        while not server.started:
            if answering.done():
                answering.result()
            await asyncio.sleep(0.005)
        yield f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    finally:
        end_streams()
        server.should_exit = True
        with contextlib.suppress(asyncio.CancelledError):
            await answering

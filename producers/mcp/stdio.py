"""`kledger mcp`: MCP over stdin and stdout, HTTP to the node.

A client starts its servers once, when it starts itself. So this server runs whether a node runs or not: without a
reachable node a call is answered with an error, and later calls work once there is one.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import replace

import structlog
from mcp import stdio_server

from kledger.client.wire import Wire
from kledger.contract.errors import LedgerError
from producers.mcp.server import NOBODY_NAMED, Call, create_server

log = structlog.get_logger(__name__)


async def serve(wire: Wire) -> None:
    """Serve requests from stdin through `wire`, until stdin ends. Stdout carries the protocol alone."""
    if wire.caller.is_operator and wire.connection.token is None:
        wire = replace(wire, caller=NOBODY_NAMED)

    async def wire_of(_call: Call) -> Wire:
        return wire

    server = create_server(wire_of)
    check = asyncio.create_task(_check_node(wire), name="look for the node")
    try:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        check.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await check
        await wire.connection.close()


async def _check_node(wire: Wire) -> None:
    """Log on stderr, which clients show, whether the node is ready."""
    try:
        await wire.look("/health/ready", also=503)
    except LedgerError as error:
        log.warning("the tools will not work until this is mended", node=wire.connection.address, error=error.message)
    else:
        log.info("the node answers", node=wire.connection.address)

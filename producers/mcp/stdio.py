"""How does a program that starts `kledger mcp` use a node? MCP over stdin and stdout, HTTP to the node.

A client starts its servers when it starts itself and rarely again. So this one serves whether a node runs or not:
each call says what is wrong, and is answered once there is a node.
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
    """Answer what comes in on stdin through `wire`, until stdin ends. Stdout carries the protocol and nothing else."""

    if wire.caller.is_operator and wire.connection.token is None:
        wire = replace(wire, caller=NOBODY_NAMED)

    async def wire_of(_call: Call) -> Wire:
        return wire

    server = create_server(wire_of)
    looking = asyncio.create_task(_look(wire), name="look for the node")
    try:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())
    finally:
        looking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await looking
        await wire.connection.close()


async def _look(wire: Wire) -> None:
    """Say on stderr, which clients show, whether the node can be used."""
    try:
        await wire.look("/health/ready", also=503)
    except LedgerError as error:
        log.warning("the tools will not work until this is mended", node=wire.connection.address, error=error.message)
    else:
        log.info("the node answers", node=wire.connection.address)

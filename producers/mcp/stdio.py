"""`kledger mcp`: MCP over stdin and stdout, HTTP to the node.

A client starts its servers once, when it starts itself. So this server runs whether a node runs or not: without a
reachable node a call is answered with an error, and later calls work once there is one.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from dataclasses import replace
from typing import cast

import anyio
import structlog
from mcp import stdio_server
from mcp.shared.message import SessionMessage

from kledger.client.slips.own_advice import SEND_A_TOKEN
from kledger.client.wire import Wire
from kledger.contract.errors import LedgerError
from producers.mcp.answering import answering
from producers.mcp.lines import Lines
from producers.mcp.server import NOBODY_NAMED, Call, create_server

log = structlog.get_logger(__name__)


async def serve(wire: Wire) -> None:
    """Serve requests from stdin through `wire`, until stdin ends and what was asked is answered.

    Stdout carries the protocol alone.
    """
    if wire.caller.is_operator and wire.connection.token is None:
        wire = replace(wire, caller=NOBODY_NAMED)

    async def wire_of(_call: Call) -> Wire:
        return wire

    server = create_server(wire_of, in_words=in_own_words)
    check = asyncio.create_task(_check_node(wire), name="look for the node")
    try:
        refusals, refused = anyio.create_memory_object_stream[SessionMessage]()
        lines = Lines(anyio.wrap_file(sys.stdin.buffer), refusals)
        async with (
            stdio_server(stdin=cast("anyio.AsyncFile[str]", lines)) as (incoming, outgoing),  # it only iterates
            answering(incoming, outgoing, refused) as (heard, told),
        ):
            await server.run(heard, told, server.create_initialization_options())
    except* BrokenPipeError:
        log.info("the client has gone and takes no more answers")
    finally:
        check.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await check
        await wire.connection.close()


def in_own_words(message: str) -> str:
    """What a node says, for a program whose token comes from a variable or a file."""
    return message.replace(
        SEND_A_TOKEN, "give one of this node in KLEDGER_TOKEN or --token-file of kledger mcp (kledger token create)"
    )


async def _check_node(wire: Wire) -> None:
    """Log on stderr, which clients show, whether the node is ready and takes the caller for who they say they are."""
    try:
        await wire.look("/health/ready", also=503)
        await wire.look("/api/whoami")  # whoever asks for the health needs no token
    except LedgerError as error:
        log.warning(
            "the tools will not work until this is mended",
            node=wire.connection.told_address,
            error=in_own_words(error.message),
        )
    else:
        log.info("the node answers", node=wire.connection.told_address)

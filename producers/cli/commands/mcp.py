"""`kledger mcp`: serve the tools over MCP on stdin and stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from producers.cli.as_command import KNOWLEDGE, as_server

if TYPE_CHECKING:
    from kledger.client.wire import Wire


async def mcp(wire: Wire) -> None:
    """Serve the tools to a program that speaks MCP, on stdin and stdout, until it closes stdin.

    Claude, Cursor and others start this themselves. The log is on stderr. Without a node it serves all the same, and
    each call says so. A node serves MCP over HTTP as well, at /mcp.

    Example: kledger mcp --agent scribe
    """
    # Imported here: the MCP SDK takes a second to load.
    from ledger.runtime.logs import log_to_stderr
    from producers.mcp.stdio import serve

    log_to_stderr()
    await serve(wire)


app = typer.Typer()
app.command("mcp", rich_help_panel=KNOWLEDGE)(as_server(mcp))

"""MCP over Streamable HTTP, as a node serves it: stateless, each request answered with one JSON document."""

from __future__ import annotations

import logging

from mcp.server import streamable_http
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import ClientDisconnect

from producers.mcp.server import Counted, WireOf, create_server


def _not_a_disconnect(record: logging.LogRecord) -> bool:
    """Log filter for the MCP SDK: False for a client that disconnected, which is no error."""
    return not (record.exc_info and isinstance(record.exc_info[1], ClientDisconnect))


def create_manager(wire_of: WireOf, counted: Counted, largest: int) -> StreamableHTTPSessionManager:
    """What answers the requests of one endpoint; it has to run. `largest`: the bytes of the largest request."""
    logging.getLogger(streamable_http.__name__).addFilter(_not_a_disconnect)
    return StreamableHTTPSessionManager(
        create_server(wire_of, counted), stateless=True, json_response=True, max_request_body_size=largest
    )

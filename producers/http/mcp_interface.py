"""What answers MCP at a node: the SDK's Streamable HTTP, whose tools call the node's own HTTP interface in process.

Identity headers are forwarded to HTTP with each call, so that tokens, identities, limits and errors are those of HTTP.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import asdict
from hashlib import sha256

import httpx
from mcp.server import streamable_http
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kledger.client.connection import Connection
from kledger.client.transport.over_httpx import HttpxTransport
from kledger.client.wire import Lineage, Wire
from kledger.contract.json_text import RepeatedKey, loads
from producers.access.principal import ADMITTED_KEY, SCOPE_KEY
from producers.http.identity import LINEAGE, OURS, SEEN, caller_of, lineage_of, seen_by
from producers.mcp.lines import refusal_of
from producers.mcp.server import NOBODY_NAMED, Call, Counted, create_server

HERE = "http://127.0.0.1"  # a host that every node accepts as its own; no socket is opened to it
_REMEMBERED = 1_000  # callers whose last write is known; the next read of an evicted one may be slightly stale
_FORWARDED = (b"authorization", b"accept-language")
_PER_CALL = {name.encode() for name in (*LINEAGE, SEEN)}


def _not_a_disconnect(record: logging.LogRecord) -> bool:
    """Log filter for the MCP SDK: False for a client that disconnected, which is no error."""
    return not (record.exc_info and isinstance(record.exc_info[1], ClientDisconnect))


def create_manager(app: ASGIApp, counted: Counted, largest: int) -> StreamableHTTPSessionManager:
    """What answers the requests of `app`'s endpoint while it runs. `largest`: bytes of the largest request."""
    logging.getLogger(streamable_http.__name__).addFilter(_not_a_disconnect)
    server = create_server(_Wires(app).of, counted)
    return _Manager(server, stateless=True, json_response=True, max_request_body_size=largest)


class _Manager(StreamableHTTPSessionManager):
    """The SDK's, but for what is no message: it is refused as `kledger mcp` refuses it.

    The SDK tells all that pydantic found in it, and takes a request whose id is none for a notification.
    """

    async def handle_request(self, scope: Scope, receive: Receive, send: Send) -> None:
        body: list[bytes] = []
        is_refused = False

        async def heard() -> Message:
            message = await receive()
            body.append(message.get("body", b""))
            if message["type"] == "http.request" and not message.get("more_body", False) and _repeats(b"".join(body)):
                return {**message, "body": b"\0"}  # no JSON any more, and so refused in the words below
            return message

        async def told(message: Message) -> None:
            nonlocal is_refused
            # Accepted as what nobody waits for, or refused; where its headers are why, the body is a message.
            if message["type"] == "http.response.start" and message["status"] in (202, 400):
                refusal = refusal_of(b"".join(body))
                if refusal is not None:
                    is_refused = True
                    await JSONResponse(refusal.model_dump(mode="json", exclude_unset=True), 400)(scope, receive, send)
            if not is_refused:
                await send(message)

        await super().handle_request(scope, heard, told)


def _repeats(body: bytes) -> bool:
    """Whether an object of a body has a key twice; False for what is no JSON."""
    try:
        loads(body)
    except RepeatedKey:
        return True
    except ValueError:
        pass
    return False


class _Wires:
    """The ways of callers into the app."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._connections: OrderedDict[bytes, Connection] = OrderedDict()

    async def of(self, call: Call) -> Wire:
        """The wire of one call."""
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
            if name in _FORWARDED or (name.startswith(OURS) and name not in _PER_CALL)
        ]
        key = sha256(b"\n".join(name + b":" + value for name, value in sorted(headers))).digest()
        connection = self._connections.get(key)
        if connection is None:
            client = httpx.AsyncClient(
                transport=httpx.ASGITransport(self._inside), base_url=HERE, headers=headers, trust_env=False
            )
            connection = self._connections[key] = Connection(
                HERE, token="", retries=3, transport=HttpxTransport.over(client)
            )
            if len(self._connections) > _REMEMBERED:
                self._connections.popitem(last=False)  # nothing to close: it has no socket
        self._connections.move_to_end(key)
        return connection

    async def _inside(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope[ADMITTED_KEY] = True
        await self._app(scope, receive, send)

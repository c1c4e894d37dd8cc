"""Lines of stdin: those that are messages go to the SDK, which drops the others; these are refused instead.

A client that sends what is no message (a batch, an id that is none, half a character) waits for an answer as for any
other request.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from dataclasses import dataclass

from anyio.streams.memory import MemoryObjectSendStream
from mcp.shared.dispatcher import as_request_id
from mcp.shared.message import SessionMessage
from mcp.types import INVALID_REQUEST, PARSE_ERROR, ErrorData, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from kledger.contract.json_text import TWICE, repeated_key

_SHAPE = (
    'this is no message of JSON-RPC 2.0: a request has jsonrpc "2.0", an id that is a text or an integer, a '
    "method, and params that are an object, where it has any"
)
_BATCH = "a batch is not taken: send one message at a time"


@dataclass(frozen=True)
class Lines:
    """The lines of a client, for the SDK. The answer to one that is no message goes to `refused`, which is closed at
    the end."""

    source: AsyncIterable[bytes]
    refused: MemoryObjectSendStream[SessionMessage]

    def __aiter__(self) -> AsyncIterator[str]:
        return self._messages()

    async def _messages(self) -> AsyncGenerator[str, None]:
        async with self.refused:
            async for line in self.source:
                refusal = refusal_of(line)
                if refusal is not None:
                    await self.refused.send(SessionMessage(refusal))
                elif line.strip():
                    yield line.decode()


def refusal_of(line: bytes) -> JSONRPCError | None:
    """What a line or a body that is no message is answered with; None for a message, and what nobody waits for."""
    text = line.decode(errors="replace")
    if not text.strip():
        return None
    try:
        document = json.loads(text)  # which takes lone surrogates: the id is found beside them
    except (ValueError, RecursionError) as error:
        return _refused(PARSE_ERROR, None, f"this is not JSON: {error}")
    if isinstance(document, list):
        return _refused(INVALID_REQUEST, None, _BATCH)
    if not isinstance(document, dict):
        return _refused(INVALID_REQUEST, None, _SHAPE)
    request_id = as_request_id(document.get("id"))
    if "id" in document and request_id is None:
        return _refused(INVALID_REQUEST, None, _SHAPE)
    try:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as error:
        (first, *_) = error.errors(include_url=False, include_input=False)
        if first["type"] == "json_invalid":
            return _refused(PARSE_ERROR, request_id, f"this is not JSON: {first['msg']}")
        is_answer = "method" not in document and ("result" in document or "error" in document)
        return None if is_answer else _refused(INVALID_REQUEST, request_id, _SHAPE)
    place = repeated_key(line, document)
    return None if place is None else _refused(INVALID_REQUEST, request_id, f"{place} {TWICE}")


def _refused(code: int, request_id: str | int | None, message: str) -> JSONRPCError:
    if isinstance(request_id, str) and not _is_text(request_id):
        request_id = None  # no answer could name it
    return JSONRPCError(jsonrpc="2.0", id=request_id, error=ErrorData(code=code, message=message))


def _is_text(value: str) -> bool:
    """Whether this is text, without half a character."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True

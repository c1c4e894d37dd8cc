"""Answering before the end: the end of what a client sends is held back from the server until each request is answered.

The SDK gives up the calls that are under way when stdin ends. A program that pipes its requests and closes the pipe
would get no answer, and could not tell whether what it saved is kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Protocol, TypeAlias

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.dispatcher import coerce_request_id
from mcp.shared.jsonrpc_dispatcher import cancelled_request_id_from_params
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCMessage, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, RequestId

Heard: TypeAlias = SessionMessage | Exception


class Outgoing(Protocol):
    """What takes the messages for the client, and is closed at the end."""

    async def send(self, item: SessionMessage, /) -> None: ...

    async def __aenter__(self) -> object: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> bool | None: ...


class _Unanswered:
    """The requests of a client that are neither answered nor cancelled."""

    def __init__(self) -> None:
        self._ids = Counter[RequestId]()  # the same id may be under way twice: each is answered
        self._fewer = anyio.Event()

    def heard(self, message: JSONRPCMessage) -> None:
        """Take note of what the client says."""
        if isinstance(message, JSONRPCRequest):
            self._ids[coerce_request_id(message.id)] += 1
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._end(cancelled_request_id_from_params(message.params))

    def told(self, message: JSONRPCMessage) -> None:
        """Take note of what the client is told."""
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._end(message.id)

    def _end(self, request_id: RequestId | None) -> None:
        if request_id is not None:
            self._ids -= Counter([coerce_request_id(request_id)])  # which leaves out what is not above 0
            self._fewer.set()

    async def none_left(self) -> None:
        """Wait until there are none."""
        while self._ids:
            self._fewer = anyio.Event()
            await self._fewer.wait()


@asynccontextmanager
async def answering(
    incoming: AsyncIterable[Heard],
    outgoing: Outgoing,
    refused: MemoryObjectReceiveStream[SessionMessage],
) -> AsyncGenerator[tuple[MemoryObjectReceiveStream[Heard], MemoryObjectSendStream[SessionMessage]], None]:
    """The streams for a server between it and its client. What is `refused` is told to the client as it comes."""
    unanswered = _Unanswered()
    to_server, heard = anyio.create_memory_object_stream[Heard]()
    told, from_server = anyio.create_memory_object_stream[SessionMessage]()

    async def hear() -> None:
        async with to_server:
            async for item in incoming:
                if isinstance(item, SessionMessage):
                    unanswered.heard(item.message)
                await to_server.send(item)
            await unanswered.none_left()

    async def tell() -> None:
        async with from_server:
            async for item in from_server:
                await outgoing.send(item)
                unanswered.told(item.message)

    async def refuse() -> None:
        async with refused:
            async for item in refused:
                await outgoing.send(item)

    async with outgoing, anyio.create_task_group() as group:
        group.start_soon(hear)
        group.start_soon(tell)
        group.start_soon(refuse)
        yield heard, told

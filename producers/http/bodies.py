"""How is a request body read? As JSON by the reader of every door, up to a size, and only when it says so."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi.routing import APIRoute
from starlette.requests import Request
from starlette.responses import Response

from ledger.errors import BadJson, PayloadTooLarge
from producers.requests import read_json

MAX_BODY = 2 * 1024 * 1024
"""One event holds less than 1 MiB; escapes may double the text."""
MAX_BATCH_BODY = 64 * 1024 * 1024


class JsonRequest(Request):
    """A request whose body is limited while it is read."""

    max_body = MAX_BODY

    async def body(self) -> bytes:
        """The whole body. Raises PayloadTooLarge before it is read to the end, BadJson for another type."""
        if not hasattr(self, "_body"):
            chunks, size = [], 0
            stated = self.headers.get("content-length", "0")
            if stated.isdecimal() and int(stated) > self.max_body:
                raise self._too_large()
            async for chunk in self.stream():
                size += len(chunk)
                if size > self.max_body:
                    raise self._too_large()
                chunks.append(chunk)
            self._body = b"".join(chunks)
            kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
            if self._body and kind != "application/json":
                raise BadJson(f"the body is {kind or 'of no stated type'}: send Content-Type: application/json")
        return self._body

    async def json(self) -> Any:
        """The body as a document. Raises BadJson, InvalidPayload."""
        return read_json(await self.body())

    def _too_large(self) -> PayloadTooLarge:
        return PayloadTooLarge(
            f"the body has more than {self.max_body:,} bytes, which is the limit here: send less at once"
        )


class _BatchRequest(JsonRequest):
    max_body = MAX_BATCH_BODY


class JsonRoute(APIRoute):
    """A route whose body is read by JsonRequest."""

    request_class: type[JsonRequest] = JsonRequest

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        request_class = self.request_class

        async def read(request: Request) -> Response:
            return await handle(request_class(request.scope, request.receive))

        return read


class BatchRoute(JsonRoute):
    """A route that takes many payloads at once."""

    request_class = _BatchRequest

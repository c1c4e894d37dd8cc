"""Request bodies: read as JSON by the reader of every interface, up to a size, and only when they say so."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from typing import Any, TypeVar

from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Scope

from kledger.contract.errors import BadJson, LedgerError, PayloadTooLarge
from producers.access.limits import Limits
from producers.http.answers import Json
from producers.http.errors import STATUS, model_of_body
from producers.http.repeated import Repeated
from producers.operations.own_writes import OwnWrites
from producers.requests.reading import MOST_LOOKED_AT, read_json, without_most_unknown

R = TypeVar("R", bound=Response | None)
LIMITS_KEY = "kledger.limits"
"""Where the guard puts the limits of the node, in the ASGI scope of a request."""


def header_of(scope: Scope, name: bytes) -> str | None:
    """The first header with this name, in lower case; None without one. The framework's own look takes four times as
    long."""
    for raw, value in scope["headers"]:
        if raw == name:
            return str(value, "latin-1")
    return None


class JsonRequest(Request):
    """A request whose body is limited while it is read."""

    document: Any = None
    """What the body says, once it is read."""

    @property
    def limits(self) -> Limits:
        """Those of the node."""
        limits: Limits = self.scope[LIMITS_KEY]
        return limits

    @property
    def max_body(self) -> int:
        """Bytes."""
        return self.limits.body

    async def bounded(self) -> bytes:
        """The whole body, of any type. Raises PayloadTooLarge before it is read to the end."""
        most, chunks, size = self.max_body, list[bytes](), 0
        stated = header_of(self.scope, b"content-length") or "0"
        if stated.isdecimal() and int(stated) > most:
            raise self._too_large()
        while True:  # the framework's own stream is a generator, which takes longer to begin than to read most bodies
            message = await self.receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > most:
                raise self._too_large()
            if not message.get("more_body"):
                return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def body(self) -> bytes:
        """The whole body. Raises PayloadTooLarge, BadJson for another type."""
        if not hasattr(self, "_body"):
            self._body = await self.bounded()
            kind = (header_of(self.scope, b"content-type") or "").partition(";")[0].strip().lower()
            if self._body and kind != "application/json":
                raise BadJson(f"the body is {kind or 'of no stated type'}: send Content-Type: application/json")
        return self._body

    async def json(self) -> Any:
        """The body as a document, without most of the fields that its route does not take, where they are very many.
        Raises BadJson, InvalidPayload."""
        body = await self.body()
        self.document = read_json(body)
        if body.count(b":") <= MOST_LOOKED_AT or (model := model_of_body(self)) is None:
            return self.document
        document, self.state.left_out = without_most_unknown(model, self.document)
        return document

    def _too_large(self) -> PayloadTooLarge:
        return PayloadTooLarge(
            f"the body has more than {self.max_body:,} bytes, which is the limit here: send less at once"
        )


class _BatchRequest(JsonRequest):
    @property
    def max_body(self) -> int:
        return self.limits.batch_body

    async def json(self) -> Any:
        """As above; a batch of more payloads than the node takes is PayloadTooLarge."""
        document = await super().json()
        if isinstance(document, dict):
            for name, part in document.items():
                if isinstance(part, list) and len(part) > self.limits.batch:
                    raise PayloadTooLarge(
                        f"{name[:40]} has {len(part):,} payloads, {self.limits.batch:,} are the limit of this node: "
                        "send them in several requests"
                    )
        return document


class JsonRoute(APIRoute):
    """A route whose body is read by JsonRequest."""

    request_class: type[JsonRequest] = JsonRequest

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()
        request_class = self.request_class

        async def read(request: Request) -> Response:
            sent = request_class(request.scope, request.receive)
            return await remembered(sent, partial(handle, sent))

        return read


async def remembered(request: Request, work: Callable[[], Awaitable[R]]) -> R:
    """Do the work of a request, and remember its key and what it wrote; None of it where the work is none."""
    try:
        response = await work()
    except (LedgerError, RequestValidationError) as error:
        if _kept_nothing(error):
            _free(request)
        raise
    if response is None:
        _free(request)
    elif request.method != "GET" and isinstance(response, Json) and response.position:
        own: OwnWrites = request.app.state.own_writes
        own.answered(response.position)
    return response


def _free(request: Request) -> None:
    """The request has kept nothing: the key that it was first sent with may be sent again."""
    if (key := getattr(request.state, "first_sent_as", None)) is not None:
        repeated: Repeated = request.app.state.repeated
        repeated.free(key)


def _kept_nothing(error: Exception) -> bool:
    """Whether a request was refused before anything of it was kept; of a batch that is too large some may be."""
    if not isinstance(error, LedgerError):
        return True
    return STATUS.get(error.code, 500) < 500 and not isinstance(error, PayloadTooLarge)


class BatchRoute(JsonRoute):
    """A route that takes many payloads at once."""

    request_class = _BatchRequest

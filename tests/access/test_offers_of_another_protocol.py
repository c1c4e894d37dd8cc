"""A request that offers to go on in another protocol, as `java.net.http` sends it, is answered like any other."""

from __future__ import annotations

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.access.wire import Wire, heard

OFFER = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQCAAAA\r\n"
HEAD = b"POST /saved HTTP/1.1\r\nHost: here\r\n" + OFFER
WHOLE = HEAD + b"Content-Length: 4\r\n\r\nbody"
IN_CHUNKS = HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n"
NEXT = b"GET /next HTTP/1.1\r\nHost: here\r\n\r\n"


def telling(told: list[tuple[str, bytes, list[bytes]]]) -> ASGIApp:
    """An app that notes the path, the body and the names of the headers of what it is asked."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        body = b""
        while (message := await receive())["type"] == "http.request":
            body += message["body"]
            if not message["more_body"]:
                break
        told.append((scope["path"], body, [name for name, _ in scope["headers"]]))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body"})

    return app


@pytest.mark.parametrize("request_", [WHOLE, IN_CHUNKS], ids=["whole", "in chunks"])
@pytest.mark.parametrize("size", [1, 70, 10_000])
async def test_its_body_is_read_and_what_follows_is_the_next_request(request_: bytes, size: int) -> None:
    told: list[tuple[str, bytes, list[bytes]]] = []
    sent = request_ + NEXT + request_
    wire: Wire = await heard(telling(told), *(sent[at : at + size] for at in range(0, len(sent), size)), answers=3)
    assert [(path, body) for path, body, _ in told] == [("/saved", b"body"), ("/next", b""), ("/saved", b"body")]
    assert b"".join(wire.pieces).count(b"HTTP/1.1 200 OK") == 3
    assert all(b"upgrade" not in names for _, _, names in told)
    assert told[0][2][:2] == [b"host", b"connection"]


async def test_a_tunnel_is_refused() -> None:
    told: list[tuple[str, bytes, list[bytes]]] = []
    wire = await heard(telling(told), b"CONNECT here:80 HTTP/1.1\r\nHost: here\r\n" + OFFER + b"\r\n" + NEXT)
    assert b"".join(wire.pieces).startswith(b"HTTP/1.1 400 ")
    assert wire.closed
    assert not told

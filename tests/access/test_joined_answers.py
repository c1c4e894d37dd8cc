"""An answer leaves in one piece: its head goes with the beginning of its body, and a stream's head at once."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from tests.access.wire import Wire, heard

LENGTH = (b"content-length", b"4")


async def asked(app: ASGIApp, method: str = "GET") -> Wire:
    """The wire over which an app was asked, once it has answered."""
    return await heard(app, f"{method} / HTTP/1.1\r\nHost: here\r\n\r\n".encode())


def answering(*bodies: bytes, headers: Any = (LENGTH,)) -> ASGIApp:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": list(headers)})
        for number, body in enumerate(bodies, 1):
            await send({"type": "http.response.body", "body": body, "more_body": number < len(bodies)})

    return app


async def test_head_and_body_are_one_piece() -> None:
    wire = await asked(answering(b"body"))
    assert len(wire.pieces) == 1
    assert wire.pieces[0].startswith(b"HTTP/1.1 200 OK\r\n")
    assert wire.pieces[0].endswith(b"\r\n\r\nbody")


async def test_what_follows_the_beginning_of_a_body_goes_as_it_comes() -> None:
    wire = await asked(answering(b"b", b"od", b"y"))
    assert [piece[-2:] for piece in wire.pieces] == [b"\nb", b"od", b"y"]


async def test_the_head_of_a_stream_goes_before_anything_of_its_body_is_there() -> None:
    begun, more = asyncio.Event(), asyncio.Event()

    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        begun.set()
        await more.wait()
        await send({"type": "http.response.body", "body": b"event"})

    asking = asyncio.create_task(asked(app))
    await begun.wait()
    more.set()
    wire = await asking
    assert wire.pieces[0].endswith(b"transfer-encoding: chunked\r\n\r\n")
    assert wire.pieces[1:] == [b"5\r\nevent\r\n0\r\n\r\n"]


@pytest.mark.parametrize("method", ["HEAD", "GET"])
async def test_a_head_without_a_body_is_sent(method: str) -> None:
    headers = (LENGTH,) if method == "HEAD" else ((b"content-length", b"0"),)
    wire = await asked(answering(b"", headers=headers), method)
    assert b"".join(wire.pieces).endswith(b"\r\n\r\n")
    assert len(wire.pieces) == 1


async def test_a_head_is_sent_though_the_app_fails_before_its_body() -> None:
    async def app(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [LENGTH]})
        raise RuntimeError("no body")

    wire = await asked(app)
    assert wire.closed
    assert len(wire.pieces) == 1
    assert wire.pieces[0].endswith(b"content-length: 4\r\n\r\n")


async def test_a_long_body_is_not_copied() -> None:
    long = b"x" * 100_000
    wire = await asked(answering(long, headers=((b"content-length", b"100000"),)))
    assert [len(piece) for piece in wire.pieces[1:]] == [100_000]

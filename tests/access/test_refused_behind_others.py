"""A request that cannot be read behind others on its connection: those are answered first, each with its own answer."""

from __future__ import annotations

import pytest
from starlette.types import Receive, Scope, Send

from tests.access.wire import heard

GOOD = b"POST /%d HTTP/1.1\r\nHost: here\r\nContent-Length: 4\r\n\r\nbody"
BAD = {
    "no request": b"\0\r\n\r\n",
    "a long head": b"GET / HTTP/1.1\r\nX-A: " + b"y" * 70_000,
    "a tunnel": b"CONNECT here:80 HTTP/1.1\r\nHost: here\r\n\r\n",
    "a broken body": b"POST /bad HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
}


async def answered(scope: Scope, receive: Receive, send: Send) -> None:
    await receive()
    body = scope["path"].encode()
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(body))]})
    await send({"type": "http.response.body", "body": body})


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("before", [1, 2, 3])
async def test_those_before_it_are_answered_and_then_it_is_refused(bad: str, before: int) -> None:
    good = b"".join(GOOD % number for number in range(before))
    wire = await heard(answered, good + BAD[bad], GOOD % 9, answers=before)
    answers = b"".join(wire.pieces).split(b"HTTP/1.1 ")[1:]
    assert [answer[-2:] for answer in answers[:-1]] == [b"/%d" % number for number in range(before)]
    assert all(answer.startswith(b"200 ") for answer in answers[:-1])
    assert answers[-1].startswith((b"400 ", b"431 "))
    assert b"connection: close" in answers[-1]
    assert wire.closed


@pytest.mark.parametrize("bad", BAD)
async def test_it_is_refused_at_once_where_none_is_before_it(bad: str) -> None:
    wire = await heard(answered, BAD[bad])
    assert b"".join(wire.pieces).startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 431 "))
    assert wire.closed

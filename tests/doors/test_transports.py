"""What does either transport of a client do: send, and tell why nothing came back?"""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
from collections.abc import AsyncIterator, Callable, Iterator

import httpx
import pytest

from kledger.client.connection import Connection
from kledger.client.transport import over_sockets
from kledger.client.transport.exchange import (
    ConnectionBroken,
    ConnectionTimedOut,
    NoSuchAddress,
    NotConnected,
    Reply,
    ReplyTimedOut,
    Request,
    Transport,
)
from kledger.client.transport.over_httpx import AT_ONCE, HttpxTransport
from kledger.client.transport.over_sockets import SocketTransport
from tests.doors.raw_server import RawServer, raw_server
from tests.doors.scripted_node import ScriptedNode, scripted_node
from tests.patience import PATIENCE

Opened = Callable[..., Transport]
ITEM = Request("GET", "/api/knowledge/k-1", {}, {}, None)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def node() -> Iterator[ScriptedNode]:
    with scripted_node() as running:
        yield running


@pytest.fixture(params=[HttpxTransport, SocketTransport], ids=["httpx", "sockets"])
async def to(request: pytest.FixtureRequest) -> AsyncIterator[Opened]:
    """Opens a transport to an address; closed in the end."""
    async with contextlib.AsyncExitStack() as stack:

        def opened(url: str, token: str | None = None, timeout: float = PATIENCE) -> Transport:
            transport: Transport = request.param(url, token, timeout=timeout, connect=PATIENCE)
            stack.push_async_callback(transport.close)
            return transport

        yield opened


@pytest.fixture
def door() -> Iterator[Callable[..., RawServer]]:
    with contextlib.ExitStack() as stack:
        yield lambda *answers: stack.enter_context(raw_server(*answers))


async def test_what_is_sent_arrives_as_it_was_said(node: ScriptedNode, to: Opened) -> None:
    node.says("POST /api/knowledge/a%2Fb%20%E6%A2%85", {"id": "k-1"}, 201, X_Ledger_Position="7")
    params = {"q": "回滚 & a+b=c?", "limit": 5, "record": False, "min_match": 0.5}
    said = Request(
        "POST", "/api/knowledge/a%2Fb%20%E6%A2%85", params, {"X-Ledger-User": "ann"}, b'{"a":"\xe6\xa2\x85"}'
    )
    answer = await to(node.url, "secret").exchange(said)
    assert answer == Reply(201, b'{"id": "k-1"}', answer.url, "7")
    assert answer.url.startswith(f"{node.url}/api/knowledge/a%2Fb%20%E6%A2%85?q=")
    (asked,) = node.asked
    assert asked.line == "POST /api/knowledge/a%2Fb%20%E6%A2%85"
    assert asked.query == {"q": "回滚 & a+b=c?", "limit": "5", "record": "false", "min_match": "0.5"}
    assert (asked.headers["authorization"], asked.headers["x-ledger-user"]) == ("Bearer secret", "ann")
    assert asked.body == {"a": "梅"}


async def asked_through(ledger: Connection) -> Reply:
    return await ledger.send("GET", ITEM.path, params={}, headers={}, repeatable=True)


async def test_of_thousands_of_calls_at_once_no_more_are_under_way_than_have_a_connection_each() -> None:
    """The pool of httpx looks at all that wait for each that comes or goes: 3,000 calls held the loop for minutes."""
    under_way, most, full, go_on = 0, 0, asyncio.Event(), asyncio.Event()

    async def answered(asked: httpx.Request) -> httpx.Response:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if most >= AT_ONCE:
            full.set()
        await go_on.wait()
        under_way -= 1
        return httpx.Response(200, content=b"{}")

    async with httpx.AsyncClient(transport=httpx.MockTransport(answered), base_url="http://node") as http:
        ledger = Connection("http://node", transport=HttpxTransport.over(http))
        calls = [asyncio.create_task(asked_through(ledger)) for _ in range(2 * AT_ONCE + 1)]
        given_up = asyncio.create_task(asked_through(ledger))
        await full.wait()
        given_up.cancel()  # as asyncio.timeout does to one that waits for its turn
        await asyncio.wait([given_up])
        go_on.set()
        assert {(await call).status for call in calls} == {200}
        assert most == AT_ONCE


async def test_several_values_of_one_name_are_sent_each(node: ScriptedNode, to: Opened) -> None:
    node.says("GET /api/x", {})
    answer = await to(node.url).exchange(Request("GET", "/api/x", {"of": ["a", "b"]}, {}, None))
    assert answer.url.endswith("?of=a&of=b")


async def test_a_path_of_the_address_stands_before_every_path(node: ScriptedNode, to: Opened) -> None:
    node.says("GET /behind/it/api/knowledge/k-1", {"id": "k-1"})
    assert (await to(f"{node.url}/behind/it/").exchange(ITEM)).status == 200


async def test_an_answer_is_one_whatever_its_status(node: ScriptedNode, to: Opened) -> None:
    node.says("GET /api/knowledge/k-1", b"", 503)
    answer = await to(node.url).exchange(ITEM)
    assert (answer.status, answer.content, answer.position) == (503, b"", "")


async def test_where_nobody_listens_there_is_no_connection(to: Opened) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        with pytest.raises(NotConnected):
            await to(f"http://127.0.0.1:{held.getsockname()[1]}").exchange(ITEM)


@pytest.mark.parametrize("host", ["nobody.invalid", "two..dots", "l" * 64])
async def test_a_host_that_nobody_knows_is_no_connection_and_its_cause_is_kept(to: Opened, host: str) -> None:
    with pytest.raises(NotConnected) as caught:
        await to(f"http://{host}:8420").exchange(ITEM)
    cause: BaseException | None = caught.value
    while cause is not None and not isinstance(cause, socket.gaierror):
        cause = cause.__cause__ or cause.__context__
    assert cause is not None


async def test_silence_is_told_as_such(to: Opened) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(ReplyTimedOut):
        await to(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=0.05).exchange(ITEM)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Le", id="half-a-head"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 1", id="half-a-length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chun", id="half-an-encoding"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", id="half-a-body"),
        pytest.param(CHUNKED + b"4\r\nha", id="half-a-chunk"),
        pytest.param(b"no HTTP at all\r\n\r\n", id="another-protocol"),
        pytest.param(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n{}", id="on-to-another-protocol"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\n{}", id="a-length-that-is-no-number"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}", id="a-length-below-zero"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 1" + b"0" * 15 + b"\r\n\r\n{}", id="more-than-memory"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 1" + b"0" * 30 + b"\r\n\r\n{}", id="more-than-any-memory"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\n{}", id="no-length-at-all"),
        pytest.param(CHUNKED + b"f" * 15 + b"\r\n{}", id="a-chunk-beyond-memory"),
        pytest.param(CHUNKED + b"-a\r\n{}", id="a-chunk-below-zero"),
        pytest.param(CHUNKED + b"2\r\n{}\r\n", id="no-last-chunk"),
    ],
)
async def test_an_answer_that_breaks_off_is_a_broken_connection(
    to: Opened, door: Callable[..., RawServer], answer: bytes
) -> None:
    with pytest.raises(ConnectionBroken) as caught:
        await to(door(answer).url).exchange(ITEM)
    assert not isinstance(caught.value, NotConnected)  # it may have been handled


async def test_that_a_node_goes_on_reading_is_no_answer(to: Opened, door: Callable[..., RawServer]) -> None:
    server = door(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    answer = await to(server.url).exchange(ITEM)
    assert (answer.status, answer.content) == (200, b"{}")


async def test_an_answer_of_many_pieces_is_whole(node: ScriptedNode, to: Opened) -> None:
    long = b"[" + b"1," * (2 * over_sockets.PIECE) + b"1]"
    node.says("GET /api/knowledge/k-1", long)
    assert (await to(node.url).exchange(ITEM)).content == long


async def test_chunks_are_one_answer_and_what_trails_them_is_left(to: Opened, door: Callable[..., RawServer]) -> None:
    server = door(CHUNKED + b"1\r\n{\r\n1\r\n}\r\n0\r\nX-After: all\r\n\r\n")
    assert (await to(server.url).exchange(ITEM)).content == b"{}"


@pytest.mark.parametrize("timeout", [math.inf, 1e300])
async def test_a_time_without_end_is_waited_as_one(node: ScriptedNode, to: Opened, timeout: float) -> None:
    node.says("GET /api/knowledge/k-1", {})
    assert (await to(node.url, timeout=timeout).exchange(ITEM)).status == 200


@pytest.mark.parametrize("timeout", [0.0, -1.0])
async def test_no_time_at_all_is_told_as_silence(to: Opened, timeout: float) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises((ReplyTimedOut, ConnectionTimedOut)):
        await to(f"http://127.0.0.1:{silent.getsockname()[1]}", timeout=timeout).exchange(ITEM)


async def test_what_no_address_can_hold_is_not_sent(node: ScriptedNode, to: Opened) -> None:
    with pytest.raises(NoSuchAddress):
        await to(node.url).exchange(ITEM._replace(path="/" + "k" * 100_000))
    assert node.asked == []

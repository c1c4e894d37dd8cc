"""What does either transport of a client do: send, tell why nothing came back, use its connection again?"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import math
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPResponse
from typing import Any

import pytest

from kledger import AsyncLedgerClient, LedgerClient
from kledger.client import connection
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
from kledger.client.transport.nearby import is_reached_plainly
from kledger.client.transport.over_httpx import HttpxTransport
from kledger.client.transport.over_sockets import SocketTransport
from kledger.client.transport.waiting import OnTheCallersThread
from kledger.contract.errors import NodeUnreachable
from producers.access.limits import Limits
from tests.doors.scripted_node import ScriptedNode, scripted_node
from tests.patience import PATIENCE

Opened = Callable[..., Transport]
ITEM = Request("GET", "/api/knowledge/k-1", {}, {}, None)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
SAVED = {"id": "k-1", "position": 7, "version": 1, "event_id": "e-1", "duplicate": False}


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


class Door:
    """A server that reads a request on each connection and does what a test has it do."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.connections = 0
        self.closed = threading.Semaphore(0)
        """Counts the connections that were closed here."""
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                taken, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            with taken:
                taken.recv(65_536)
                taken.sendall(self._answers.pop(0))
            self.closed.release()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


@pytest.fixture
def door() -> Iterator[Callable[..., Door]]:
    with contextlib.ExitStack() as stack:

        def opened(*answers: bytes) -> Door:
            new = Door(*answers)
            stack.callback(new.close)
            return new

        yield opened


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
    to: Opened, door: Callable[..., Door], answer: bytes
) -> None:
    with pytest.raises(ConnectionBroken) as caught:
        await to(door(answer).url).exchange(ITEM)
    assert not isinstance(caught.value, NotConnected)  # it may have been handled


async def test_that_a_node_goes_on_reading_is_no_answer(to: Opened, door: Callable[..., Door]) -> None:
    server = door(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    answer = await to(server.url).exchange(ITEM)
    assert (answer.status, answer.content) == (200, b"{}")


async def test_an_answer_of_many_pieces_is_whole(node: ScriptedNode, to: Opened) -> None:
    long = b"[" + b"1," * (2 * over_sockets.PIECE) + b"1]"
    node.says("GET /api/knowledge/k-1", long)
    assert (await to(node.url).exchange(ITEM)).content == long


async def test_chunks_are_one_answer_and_what_trails_them_is_left(to: Opened, door: Callable[..., Door]) -> None:
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


async def test_a_connection_that_the_server_closed_is_not_used_again(door: Callable[..., Door]) -> None:
    kept = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"  # it does not say that it will close
    server = door(kept, kept)
    transport = SocketTransport(server.url, None, timeout=PATIENCE, connect=PATIENCE)
    for number in (1, 2):
        assert (await transport.exchange(ITEM)).status == 200
        assert await asyncio.to_thread(server.closed.acquire, timeout=PATIENCE)
        assert server.connections == number
    await transport.close()


async def test_a_connection_that_is_open_is_used_again(node: ScriptedNode) -> None:
    node.says("GET /api/knowledge/k-1", {})
    transport = SocketTransport(node.url, None, timeout=PATIENCE, connect=PATIENCE)
    sockets = set()
    for _ in range(3):
        await transport.exchange(ITEM)
        sockets.add(transport._idle[0].connection.sock.getsockname())
    assert len(sockets) == 1
    await transport.close()


async def test_what_is_refused_before_it_was_sent_whole_is_an_answer(door: Callable[..., Door]) -> None:
    server = door(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")  # and reads no more
    transport = SocketTransport(server.url, None, timeout=PATIENCE, connect=PATIENCE)
    answer = await transport.exchange(ITEM._replace(method="POST", content=b"x" * 50_000_000))
    assert (answer.status, answer.content) == (413, b"{}")


def test_a_process_that_was_forked_asks_on_a_connection_of_its_own(node: ScriptedNode) -> None:
    node.says("GET /api/knowledge/k-1", {"id": "k-1"})
    asked = f"""
import os, sys
from kledger import LedgerClient
client = LedgerClient({node.url!r}, token="")
client.get("k-1")
mine = lambda: client.wire.connection.carrier._idle[-1].connection.sock.getsockname()
before = mine()
child = os.fork()
if not child:
    client.get("k-1")
    os._exit(0 if mine() != before else 1)
assert os.waitpid(child, 0)[1] == 0, "the child used the parent's connection"
client.get("k-1")
assert mine() == before
"""
    subprocess.run([sys.executable, "-c", asked], check=True)


async def test_a_transport_that_is_closed_meanwhile_keeps_no_connection(node: ScriptedNode) -> None:
    node.says("GET /api/knowledge/k-1", {})
    transport = SocketTransport(node.url, None, timeout=PATIENCE, connect=PATIENCE)
    with closed_while_it_is_read(transport):
        assert (await transport.exchange(ITEM)).status == 200
    assert transport._idle == []


@contextlib.contextmanager
def closed_while_it_is_read(transport: SocketTransport) -> Iterator[None]:
    """Every answer is read while another thread closes the transport."""
    read = over_sockets._body

    def closing(answer: HTTPResponse) -> bytes:
        with ThreadPoolExecutor(1) as other:
            other.submit(OnTheCallersThread().run, transport.close()).result()
        return read(answer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(over_sockets, "_body", closing)
        yield


async def test_connections_that_a_burst_has_left_are_closed(
    node: ScriptedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    node.says("GET /api/knowledge/k-1", {})
    transport = SocketTransport(node.url, None, timeout=PATIENCE, connect=PATIENCE)
    together = threading.Barrier(4)
    read = over_sockets._body

    def at_once(answer: HTTPResponse) -> bytes:
        together.wait(PATIENCE)
        return read(answer)

    with monkeypatch.context() as patch, ThreadPoolExecutor(4) as threads:
        patch.setattr(over_sockets, "_body", at_once)
        list(threads.map(lambda _: OnTheCallersThread().run(transport.exchange(ITEM)), range(4)))
    left = [each.connection for each in transport._idle]
    assert len(left) == 4
    transport._idle = [each._replace(since=each.since - over_sockets.KEPT_IDLE) for each in transport._idle[:3]] + (
        transport._idle[3:]
    )
    await transport.exchange(ITEM)
    assert [each.connection for each in transport._idle] == left[3:]
    assert [each.sock for each in left[:3]] == [None] * 3
    await transport.close()


def test_a_client_gives_a_connection_up_before_a_node_does() -> None:
    assert Limits().idle_seconds > over_sockets.KEPT_IDLE


def test_threads_that_ask_first_together_share_one_transport(monkeypatch: pytest.MonkeyPatch) -> None:
    open_one = connection.Connection._opened

    def opened_while_others_run(self: connection.Connection) -> Transport:
        time.sleep(0.001)  # it lets the others look, too
        return open_one(self)

    monkeypatch.setattr(connection.Connection, "_opened", opened_while_others_run)
    wire, together = connection.Connection(blocking=True), threading.Barrier(8)

    def first(_: int) -> Transport:
        together.wait(PATIENCE)
        return wire.carrier

    with ThreadPoolExecutor(8) as threads:
        assert len(set(threads.map(first, range(8)))) == 1


def test_threads_that_write_together_remember_the_highest_position() -> None:
    class Compared(int):
        """A position; others run between its comparison and what follows from it."""

        def __gt__(self, other: int) -> bool:
            greater = super().__gt__(other)
            time.sleep(0.001)
            return greater

    wire, together = connection.Connection(blocking=True), threading.Barrier(8)

    def write(position: int) -> None:
        together.wait(PATIENCE)
        wire.saw(Compared(position))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(8, 0, -1)))
    assert wire.written == 8


async def test_a_closed_transport_opens_again(node: ScriptedNode) -> None:
    node.says("GET /api/knowledge/k-1", {})
    transport = SocketTransport(node.url, None, timeout=PATIENCE, connect=PATIENCE)
    await transport.exchange(ITEM)
    await transport.close()
    assert (await transport.exchange(ITEM)).status == 200
    await transport.close()


def test_threads_share_a_client_and_each_gets_its_own_answers(node: ScriptedNode) -> None:
    for number in range(16):
        node.says(f"GET /api/knowledge/k-{number}", {"id": f"k-{number}"})
    with LedgerClient(node.url) as ledger, ThreadPoolExecutor(8) as threads:
        wanted = [f"k-{number % 16}" for number in range(160)]
        assert [each["id"] for each in threads.map(ledger.get, wanted)] == wanted


def test_threads_that_ask_at_once_open_one_transport(node: ScriptedNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others would lose what they connect: sockets that nobody closes."""
    opened, all_ask = [], threading.Barrier(8)

    class Slow(SocketTransport):
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            opened.append(self)
            super().__init__(*args, **kwargs)
            more_came.wait(0.05)  # those that do not wait for this one are here by then

    more_came = threading.Event()
    monkeypatch.setattr(over_sockets, "SocketTransport", Slow)
    node.says("GET /api/knowledge/k-1", {"id": "k-1"})

    def ask(_: int) -> str:
        all_ask.wait(PATIENCE)
        return str(ledger.get("k-1")["id"])

    with LedgerClient(node.url) as ledger, ThreadPoolExecutor(8) as threads:
        assert list(threads.map(ask, range(8))) == ["k-1"] * 8
    assert len(opened) == 1


# What a loop that has ended leaves open is closed when it is collected, and Python tells so: here, by `gc.collect`.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_async_client_serves_one_event_loop_after_another(node: ScriptedNode) -> None:
    """As in a script that calls `asyncio.run` for each question."""
    node.says("GET /api/knowledge/k-1", {"id": "k-1"})
    ledger = AsyncLedgerClient(node.url)

    async def ask() -> str:
        return str((await ledger.get("k-1"))["id"])

    for _ in range(3):
        assert asyncio.run(ask()) == "k-1"

    async def ask_and_close() -> str:
        async with ledger:
            return await ask()

    assert asyncio.run(ask_and_close()) == "k-1"
    gc.collect()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_event_loops_of_two_threads_share_an_async_client(node: ScriptedNode) -> None:
    node.says("GET /api/knowledge/k-1", {"id": "k-1"})
    async with AsyncLedgerClient(node.url) as ledger:

        async def ask() -> None:
            for _ in range(10):
                assert (await ledger.get("k-1"))["id"] == "k-1"

        await asyncio.gather(ask(), asyncio.to_thread(asyncio.run, ask()))
    gc.collect()


def test_a_client_that_waits_sends_a_write_again_with_its_key(
    node: ScriptedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "FIRST_PAUSE", 0.001)
    node.hangs_up("POST /api/knowledge", times=2)
    node.says("POST /api/knowledge", SAVED)
    with LedgerClient(node.url) as ledger:
        assert ledger.save("t", "c", ["tool"])["position"] == 7
        assert ledger.written == 7
    assert len(node.asked) == 3
    assert len({asked.headers["idempotency-key"] for asked in node.asked}) == 1


def test_a_client_that_waits_tells_of_a_node_that_does_not_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with (
            LedgerClient(url, timeout=0.05) as ledger,
            pytest.raises(NodeUnreachable, match=r"no answer within 0\.05 s"),
        ):
            ledger.search("q")


@pytest.mark.parametrize(
    ("address", "proxy", "plainly"),
    [
        ("http://127.0.0.1:8420", None, True),
        ("http://[::1]:8420", None, True),
        ("http://localhost:8420", "HTTP_PROXY", True),  # no proxy reaches the caller's own machine
        ("http://node.example:8420", None, True),
        ("http://node.example:8420", "HTTP_PROXY", False),
        ("http://node.example:8420", "all_proxy", False),
        ("https://127.0.0.1:8420", None, False),
        ("http://ann:word@127.0.0.1:8420", None, False),
        ("http://bücher.example:8420", None, False),
    ],
)
def test_sockets_alone_carry_what_needs_neither_tls_nor_a_proxy(
    monkeypatch: pytest.MonkeyPatch, address: str, proxy: str | None, plainly: bool
) -> None:
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    if proxy is not None:
        monkeypatch.setenv(proxy, "http://127.0.0.1:1")
    assert is_reached_plainly(address) is plainly
    with LedgerClient(address) as ledger:
        assert isinstance(ledger.wire.connection.carrier, SocketTransport if plainly else HttpxTransport)


def test_what_would_wait_for_an_event_loop_is_refused_on_the_callers_thread() -> None:
    with pytest.raises(RuntimeError, match="event loop"):
        OnTheCallersThread().run(asyncio.sleep(1))

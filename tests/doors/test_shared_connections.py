"""Who shares the connections of a client: calls, threads, event loops, processes; and what closes them?"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPResponse

import pytest

from kledger import AsyncLedgerClient, LedgerClient
from kledger.client import connection
from kledger.client.transport import over_sockets
from kledger.client.transport.exchange import (
    Request,
    Transport,
)
from kledger.client.transport.nearby import is_reached_plainly
from kledger.client.transport.over_httpx import HttpxTransport
from kledger.client.transport.over_sockets import SocketTransport
from kledger.client.transport.portal import Portal
from kledger.client.transport.waiting import OnTheCallersThread
from kledger.contract.errors import NodeUnreachable
from producers.access.limits import Limits
from tests.doors.raw_server import RawServer, raw_server
from tests.doors.scripted_node import ScriptedNode, scripted_node
from tests.patience import PATIENCE

ITEM = Request("GET", "/api/knowledge/k-1", {}, {}, None)
SAVED = {"id": "k-1", "position": 7, "version": 1, "event_id": "e-1", "duplicate": False}


@pytest.fixture
def node() -> Iterator[ScriptedNode]:
    with scripted_node() as running:
        yield running


@pytest.fixture
def door() -> Iterator[Callable[..., RawServer]]:
    with contextlib.ExitStack() as stack:
        yield lambda *answers: stack.enter_context(raw_server(*answers))


async def test_a_connection_that_the_server_closed_is_not_used_again(door: Callable[..., RawServer]) -> None:
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


async def test_what_is_refused_before_it_was_sent_whole_is_an_answer(door: Callable[..., RawServer]) -> None:
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


def test_a_process_that_was_forked_has_a_loop_of_its_own(node: ScriptedNode) -> None:
    node.says("GET /api/knowledge/k-1", {"id": "k-1"})
    asked = f"""
import os, signal
from kledger import LedgerClient
from kledger.client.transport.portal import Portal
from kledger.client.transport.over_httpx import HttpxTransport
client = LedgerClient({node.url!r}, token="")
client.wire.connection.transport = HttpxTransport({node.url!r}, None, timeout=60, connect=60)
client._runner = Portal()
client.get("k-1")
child = os.fork()
if not child:
    signal.alarm(60)  # a child that waits for a thread that it has not would wait for ever
    client.get("k-1")
    client.close()
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0, "the child has no answer"
client.get("k-1")
client.close()
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


@pytest.mark.parametrize("header", ["9" * 5_000, str(2**63), "-1", "seven"])
@pytest.mark.parametrize("said", [2**63, -1, "7"])
def test_a_position_that_no_log_can_have_is_none(header: str, said: object) -> None:
    body = json.dumps({"position": said}).encode()
    head = f"HTTP/1.1 201 Created\r\nContent-Length: {len(body)}\r\nX-Ledger-Position: {header}\r\n\r\n"
    with raw_server(head.encode() + body) as node, LedgerClient(node.url) as ledger:
        ledger.save("t", "c", ["tool"])
        assert ledger.written == 0


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


def test_a_call_on_a_loop_of_its_own_ends_though_another_thread_closes_the_client() -> None:
    portal, begun, go_on = Portal(), threading.Event(), threading.Event()

    async def answer() -> str:
        begun.set()
        await asyncio.to_thread(go_on.wait)
        return "answered"

    with ThreadPoolExecutor(1) as beside:
        waiting = beside.submit(portal.run, answer())
        assert begun.wait(PATIENCE)
        portal.close()
        assert portal.run(asyncio.sleep(0, "a loop that was started since")) == "a loop that was started since"
        go_on.set()
        assert waiting.result(PATIENCE) == "answered"
    portal.close()

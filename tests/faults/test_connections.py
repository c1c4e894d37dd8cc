"""What clients do to a connection before they ask anything: too much, too slowly, too many, and gone again."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from tests.journeys.running_node import RunningNode, running, until
from tests.patience import PATIENCE

MIB = 2**20
LIMITS = {
    "KLEDGER_LIMIT_HEAD_SECONDS": "1",
    "KLEDGER_LIMIT_BODY_SECONDS": "1",
    "KLEDGER_LIMIT_IDLE_SECONDS": "1",
    "KLEDGER_LIMIT_CONNECTIONS": "40",
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    """A node that waits for nobody longer than a second."""
    with running(tmp_path_factory.mktemp("connections") / "data", env=LIMITS) as node:
        yield node


def connect(node: RunningNode) -> socket.socket:
    at = urlsplit(node.url)
    connection = socket.create_connection((at.hostname, at.port), timeout=30)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def rest(connection: socket.socket) -> bytes:
    """What the node still sends until it closes the connection; it has to."""
    received = b""
    try:
        while part := connection.recv(65536):
            received += part
    except ConnectionResetError:
        pass
    return received


def refused(answer: bytes, status: int, code: str) -> None:
    """The answer is this error, in the form of every error of the node."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status), answer
    assert b"connection: close" in head.lower()
    assert json.loads(body)["error"]["code"] == code


def resident(node: RunningNode) -> int:
    """Bytes of memory that the node's process has."""
    return int(Path(f"/proc/{node.process.pid}/statm").read_text().split()[1]) * 4096


def sent(connection: socket.socket, part: bytes, times: int) -> bytes:
    """Send the same many times, until the node has enough of it; what it answers."""
    try:
        for _ in range(times):
            connection.sendall(part)
    except OSError:
        pass
    return rest(connection)


@pytest.mark.parametrize(
    ("begins", "goes_on"),
    [
        (b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ", b"y" * MIB),
        (b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"X-A: " + b"y" * 1000 + b"\r\n"),
        (b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"X: 1\r\n" * 1000),
        (b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"n" * MIB),
        (b"GET /", b"u" * MIB),
        (b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: ", b"t" * MIB),
        (
            b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
            b"Trailer: " + b"y" * 1000 + b"\r\n",
        ),
    ],
    ids=["one header", "many headers", "tiny headers", "a name", "an address", "the tool endpoint", "trailers"],
)
def test_250_mb_of_a_head_leave_the_memory_of_the_node_alone(node: RunningNode, begins: bytes, goes_on: bytes) -> None:
    assert httpx.get(f"{node.url}/health/live", timeout=PATIENCE).status_code == 200
    before = resident(node)
    with connect(node) as connection:
        connection.sendall(begins)
        sent(connection, goes_on, 250 * MIB // len(goes_on))
    assert resident(node) - before < 50 * MIB
    assert httpx.get(f"{node.url}/health/live", timeout=PATIENCE).status_code == 200


def test_a_head_that_is_a_little_too_long_is_answered_with_431(node: RunningNode) -> None:
    for padding, expected in ((60_000, b"HTTP/1.1 200 "), (66_000, b"HTTP/1.1 431 ")):
        with connect(node) as connection:
            connection.sendall(
                b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nX-A: "
                + b"y" * padding
                + b"\r\n\r\n"
            )
            answer = rest(connection)
        assert answer.startswith(expected)
    refused(answer, 431, "head_too_large")


def test_heads_of_requests_on_one_connection_are_counted_one_by_one(node: RunningNode) -> None:
    one = b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: " + b"y" * 50_000 + b"\r\n\r\n"
    with connect(node) as connection:
        connection.sendall(one * 5)
        answer = rest(connection)
    assert answer.count(b"HTTP/1.1 200 ") == 5


@pytest.mark.parametrize(
    ("sends", "status"),
    [
        (b"", 0),
        (b"\r\n\r\n", 0),
        (b"GET /health/live HT", 408),
        (b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A", 408),
        (
            b"POST /api/knowledge HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
            b"Content-Length: 9\r\n\r\n{",
            408,
        ),
        (b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{", 408),
        (b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 200),
        (b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\nGET /he", 200),
        (b"POST /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\n{", 404),
    ],
    ids=[
        "silence",
        "blank lines",
        "half a line",
        "half a head",
        "half a body",
        "half a call",
        "an answer",
        "more",
        "unread",
    ],
)
def test_a_connection_on_which_nothing_more_comes_is_closed(node: RunningNode, sends: bytes, status: int) -> None:
    with connect(node) as connection:
        connection.sendall(sends)
        answer = rest(connection)
    assert answer.startswith(b"HTTP/1.1 %d " % status if status else b""), answer
    if status == 408:
        refused(answer, 408, "request_too_slow")
    elif not status:
        assert answer == b""


@pytest.mark.parametrize(
    "begins",
    [
        b"",
        b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nX-A: ",
        b"POST /api/knowledge HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: 90000\r\n\r\n",
        b"POST /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 90000\r\n\r\n",
    ],
    ids=["blank lines", "a head", "a body", "a body that nobody reads"],
)
def test_many_that_send_a_byte_at_a_time_are_closed_while_others_are_served(node: RunningNode, begins: bytes) -> None:
    slow = [connect(node) for _ in range(30)]
    for connection in slow:
        connection.sendall(begins)
        connection.setblocking(False)
    open_still = list(slow)

    def all_closed() -> bool:
        assert httpx.get(f"{node.url}/health/live", timeout=PATIENCE).status_code == 200
        for connection in list(open_still):
            try:
                connection.send(b"\n" if not begins else b"y")
                if connection.recv(65536) == b"":
                    open_still.remove(connection)
            except BlockingIOError:
                pass
            except OSError:
                open_still.remove(connection)
        return not open_still

    until(all_closed, "every slow connection is closed")
    for connection in slow:
        connection.close()


def test_more_connections_than_the_node_takes_cost_those_that_wait_longest(node: RunningNode) -> None:
    silent = [connect(node) for _ in range(39)]
    for _ in range(5):
        with connect(node) as connection:
            connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            assert rest(connection).startswith(b"HTTP/1.1 200 ")
    assert rest(silent[0]) == b""
    for connection in silent:
        connection.close()


def test_where_every_connection_sends_a_body_the_one_that_began_first_gives_way(node: RunningNode) -> None:
    begins = (
        b"POST /api/knowledge/batch HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: 1000000\r\n\r\n{"
    )
    sending = [connect(node) for _ in range(40)]
    for connection in sending:
        connection.sendall(begins + b" " * 100_000)  # enough for its time to be given again
    with connect(node) as connection:
        connection.sendall(b"GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
        assert rest(connection).startswith(b"HTTP/1.1 200 ")
    refused(rest(sending[0]), 408, "request_too_slow")
    for connection in sending:
        connection.close()


def test_a_client_that_takes_no_answer_is_let_go(node: RunningNode) -> None:
    with node.client() as ledger:
        ledger.save_many([{"task": f"t{n}", "content": "x" * 50_000, "types": ["tool"]} for n in range(100)])
    ask = b"GET /api/knowledge?limit=100 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with connect(node) as connection:
        connection.sendall(ask * 40)
        until(lambda: _is_reset(connection), "the connection is closed")
    assert "Traceback" not in node.said(), "what it had asked in advance is answered to nobody"


def _is_reset(connection: socket.socket) -> bool:
    try:
        connection.send(b"GET")
    except OSError:
        return True
    return False


@pytest.mark.parametrize("path", ["/api/knowledge", "/api/knowledge/batch", "/mcp", "/nothing"])
def test_a_client_that_hangs_up_is_no_fault_of_the_node(node: RunningNode, path: str) -> None:
    with connect(node) as connection:
        connection.sendall(
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: application/json, text/event-stream\r\n"
            "Content-Type: application/json\r\nContent-Length: 900\r\n\r\n{".encode()
        )
        connection.shutdown(socket.SHUT_RDWR)
    if path != "/nothing":
        until(lambda: f'route="{path}",status="499"' in metrics(node), "it is counted as one that hung up")
    assert 'status="500"' not in metrics(node)
    assert "a request failed" not in node.said()
    assert "Traceback" not in node.said()


def metrics(node: RunningNode) -> str:
    return httpx.get(f"{node.url}/metrics", timeout=PATIENCE).text


def test_an_address_with_letters_as_they_are_is_told_how_to_write_them(node: RunningNode) -> None:
    """`curl '…/search?q=分支'` sends the letters as they are."""
    with connect(node) as connection:
        connection.sendall("GET /api/knowledge/search?q=分支 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        answered = rest(connection)
    refused(answered, 400, "bad_request")
    assert b"%XX" in answered
    assert b"--data-urlencode" in answered


def test_whatever_is_logged_is_one_json_document_a_line(node: RunningNode) -> None:
    before = node.log.read_text().count("a request cannot be read")
    for _ in range(20):
        with connect(node) as connection:
            connection.sendall(b"no request at all\r\n\r\n")
            refused(rest(connection), 400, "bad_request")
    with connect(node) as connection:
        connection.sendall(
            b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
        )
        rest(connection)
    until(lambda: "a request cannot be read" in node.log.read_text(), "the node said something of it")
    lines = [json.loads(line) for line in node.log.read_text().splitlines()]
    assert all(set(line) >= {"event", "level", "timestamp"} for line in lines), lines
    told = sum(line["event"] == "a request cannot be read" for line in lines)
    assert told - before <= 2, "of what any caller can cause there is one line a minute"

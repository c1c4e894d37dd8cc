"""Bodies of all requests together: a node holds so many bytes of them, and the largest that still comes gives way."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import httpx
import pytest

from tests.faults.test_connections import MIB, connect, refused, rest
from tests.journeys.running_node import RunningNode, running, until

MOST = 8 * MIB
LARGE, SMALL = 5 * MIB, MIB


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    """A node that holds few bodies."""
    with running(
        tmp_path_factory.mktemp("bodies") / "data", "--quack", "off", env={"KLEDGER_LIMIT_BODIES": str(MOST)}
    ) as node:
        yield node


def begun(node: RunningNode, size: int, *, left: int = 1) -> socket.socket:
    """A connection that has sent a body of so many bytes, but for the last ones."""
    connection = connect(node)
    connection.sendall(
        b"POST /api/knowledge/batch HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        b"Content-Length: %d\r\n\r\n" % size + b" " * (size - left)
    )
    return connection


def is_answered(connection: socket.socket) -> bool:
    connection.settimeout(0.02)
    try:
        return bool(connection.recv(1, socket.MSG_PEEK))
    except TimeoutError:
        return False
    except OSError:
        return True
    finally:
        connection.settimeout(30)


def test_the_largest_body_that_still_comes_gives_way_and_the_others_are_answered(node: RunningNode) -> None:
    small = [begun(node, SMALL) for _ in range(4)]
    large = begun(node, LARGE)
    until(lambda: is_answered(large), "the largest is answered")
    answer = rest(large)
    large.close()
    refused(answer, 429, "rate_limited")
    assert b"retry-after: 5\r\n" in answer.lower()
    for connection in small:
        connection.sendall(b"!")
        assert connection.recv(65536).startswith(b"HTTP/1.1 400 "), "it was read whole, and is no JSON"
        connection.close()


def test_bodies_that_were_answered_given_up_or_refused_are_not_counted_any_more(node: RunningNode) -> None:
    for _ in range(3):
        given_up = begun(node, LARGE)
        given_up.close()
    until(lambda: _posted(node, MOST - MIB) != 429, "those who hung up have left their room")
    for _ in range(3):
        assert _posted(node, LARGE, content_type="text/plain") == 400
        until(lambda: _posted(node, MOST - MIB) != 429, "what was refused early has left its room")


def _posted(node: RunningNode, size: int, *, content_type: str = "application/json") -> int:
    """The status that a body of so many bytes is answered with: 429 where it finds no room."""
    url = f"{node.url}/api/knowledge/batch"
    return httpx.post(url, content=b" " * size, headers={"Content-Type": content_type}, timeout=60).status_code

"""Answers that are not taken: a node holds so many bytes of them, and who takes the longest loses the connection."""

from __future__ import annotations

import socket
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from tests.faults.test_connections import MIB, rest
from tests.journeys.running_node import RunningNode, caught_up, running, until
from tests.patience import PATIENCE

MOST, READERS = 12 * MIB, 10
ITEM, ITEMS = 800_000, 10
LEAST = 6 * MIB
"""Of an answer; the kernel holds up to 4 MiB of it."""


def asking(node: RunningNode) -> socket.socket:
    """A connection that has asked for all items, and takes nothing of them."""
    at = urlsplit(node.url)
    connection = socket.socket()
    connection.settimeout(PATIENCE)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)  # before, so that the kernel keeps little of it
    connection.connect((at.hostname, at.port))
    connection.sendall(b"GET /api/knowledge?limit=100 HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    until(lambda: connection.recv(1, socket.MSG_PEEK), "its answer has begun")
    return connection


def missing(answer: bytes) -> int:
    """Bytes of an answer that did not come."""
    head, _, body = answer.partition(b"\r\n\r\n")
    (length,) = [int(line.partition(b":")[2]) for line in head.lower().split(b"\r\n") if b"content-length" in line]
    assert length > LEAST
    return length - len(body)


def test_who_takes_an_answer_for_longest_loses_it_where_all_together_are_too_many_bytes(tmp_path: Path) -> None:
    with running(tmp_path / "data", "--quack", "off", env={"KLEDGER_LIMIT_ANSWERS": str(MOST)}) as node:
        with node.client() as ledger:
            for number in range(ITEMS):
                ledger.save(f"text {number}", "word " * (ITEM // 5), ["tool"], scopes=["public"])
            caught_up(ledger)
        slow = [asking(node) for _ in range(READERS)]
        assert httpx.get(f"{node.url}/health/live", timeout=PATIENCE).status_code == 200
        for connection in slow:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, MIB)  # now it takes all there is
        lost = [missing(rest(connection)) for connection in slow]
        for connection in slow:
            connection.close()
        assert lost[0] > 0
        assert lost[-1] == 0
        assert sorted(lost, key=bool, reverse=True) == lost, "those that began first"
        assert len([each for each in lost if each == 0]) * (LEAST - 4 * MIB) <= MOST
        assert httpx.get(f"{node.url}/api/knowledge?limit=100", timeout=PATIENCE).status_code == 200

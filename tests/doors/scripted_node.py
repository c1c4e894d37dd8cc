"""A stand-in for a node that says what a test has it say, and remembers what it was asked.

It speaks real HTTP on a real port, so that what the SDK and the command send is what would arrive; it can
also hang up in the middle, which a real node does only when it is killed.
"""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest


@dataclass(frozen=True)
class Asked:
    """One request as it arrived; `path` is not decoded."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]  # names in lower case
    body: Any

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True)
class Reply:
    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


HANG_UP = Reply(0, b"")


class ScriptedNode:
    """Answers as told: the replies of a line in their order, the last one again and again."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[Asked] = []
        self._replies: dict[str, list[Reply]] = defaultdict(list)
        self._lock = threading.Lock()

    def says(self, line: str, document: Any, status: int = 200, **headers: str) -> None:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self._replies[line].append(Reply(status, body, named))

    def refuses(self, line: str, code: str, status: int, message: str = "no", **details: Any) -> None:
        self.says(line, {"error": {"code": code, "message": message, "details": details}}, status)

    @property
    def told(self) -> list[Asked]:
        """What was written, in the order in which it arrived."""
        return [asked for asked in self.asked if asked.method != "GET"]

    def hangs_up(self, line: str, times: int = 1) -> None:
        self._replies[line] += [HANG_UP] * times

    def reply(self, asked: Asked) -> Reply:
        with self._lock:
            self.asked.append(asked)
            replies = self._replies[asked.line]
            if not replies:
                text = f"the test has not said what {asked.line} answers"
                return Reply(500, json.dumps({"error": {"code": "unscripted", "message": text}}).encode())
            return replies.pop(0) if len(replies) > 1 else replies[0]


def refusing_in(words: str) -> type[ScriptedNode]:
    """A node that refuses everything, in these words."""

    class Refusing(ScriptedNode):
        def reply(self, asked: Asked) -> Reply:
            self.asked.append(asked)
            document = {"error": {"code": "illegal_state", "message": words, "details": {words: words}}}
            return Reply(409, json.dumps(document).encode())

    return Refusing


@contextmanager
def commanded_node(environment: pytest.MonkeyPatch) -> Iterator[ScriptedNode]:
    """A scripted node that the commands ask, for nobody unless they say for whom."""
    with scripted_node() as running:
        for name in ("USER", "AGENT", "PROJECT", "TEAM", "ORG"):
            environment.delenv(f"KLEDGER_{name}", raising=False)
        environment.setenv("KLEDGER_URL", running.url)
        yield running


@contextmanager
def scripted_node(kind: type[ScriptedNode] = ScriptedNode) -> Iterator[ScriptedNode]:
    """A node on a free port, for one test."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else a body waits 40 ms for the acknowledgement of its headers

        def _handle(self) -> None:
            parts = urlsplit(self.path)
            raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked = Asked(
                self.command,
                parts.path,
                {name: values[0] for name, values in parse_qs(parts.query).items()},
                {name.lower(): value for name, value in self.headers.items()},
                json.loads(raw) if raw else None,
            )
            reply = node.reply(asked)
            if reply is HANG_UP:
                self.close_connection = True
                return
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: a test prints its own failure."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    node = kind(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield node
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

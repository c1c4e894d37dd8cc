"""What was refused, given up or answered is let go at once: no body stays until the collector looks for garbage."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from starlette.types import ASGIApp, Message

from producers.http.mcp_mount import PATH as MCP
from tests.doors.http_door import ALICE, Door, http_door
from tests.doors.one_app import app_of
from tests.house.project import ROOT

LARGE = "x" * 300_000
ITEM = {"task": "t", "content": LARGE, "types": ["tool"]}
NO_KIND = {"task": "t", "content": LARGE}
"""An item that a validator of a whole model refuses."""


@contextmanager
def no_collection() -> Iterator[Callable[[], int]]:
    """Nothing looks for garbage within; what is given counts the large texts that are in it by now."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield _large_in_garbage
    finally:
        gc.enable()
        gc.unfreeze()


def _large_in_garbage() -> int:
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
    finally:
        gc.set_debug(0)
    texts = {
        id(part)
        for each in gc.garbage
        for part in gc.get_referents(each)
        if isinstance(part, bytes | bytearray | str) and len(part) > 100_000
    }
    gc.garbage.clear()
    return len(texts)


async def send(
    app: ASGIApp, method: str, path: str, body: bytes, *, kind: bytes = b"application/json", end: bool = True
) -> int:
    """Send a request as a server hands it on; without an `end` the client hangs up. The status of the answer."""
    parts, statuses = [body], []
    scope = {
        "type": "http", "http_version": "1.1", "method": method, "scheme": "http", "root_path": "",
        "path": path, "raw_path": path.encode(), "query_string": b"", "server": ("127.0.0.1", 80), "client": None,
        "headers": [
            (b"host", b"127.0.0.1"), (b"content-type", kind), (b"accept", b"application/json, text/event-stream"),
            *((name.lower().encode(), value.encode()) for name, value in ALICE.items()),
        ],
    }  # fmt: skip

    async def receive() -> Message:
        if parts:
            return {"type": "http.request", "body": bytes(parts.pop()), "more_body": not end}
        return {"type": "http.disconnect"}

    async def answer(message: Message) -> None:
        if "status" in message:
            statuses.append(message["status"])

    await app(scope, receive, answer)
    return statuses[0] if statuses else 0


def take_a_body() -> list[tuple[str, str]]:
    """Method and path of what takes a document, as the reference has them: to make that anew takes a second."""
    reference = json.loads((ROOT / "docs" / "reference" / "openapi.json").read_text("utf-8"))
    return [
        (method.upper(), re.sub(r"\{\w+\}", "thing", path))
        for path, methods in reference["paths"].items()
        for method, described in methods.items()
        if "requestBody" in described
    ]


def said(document: Any) -> bytes:
    return json.dumps(document).encode()


def called(name: str, **arguments: Any) -> bytes:
    return said({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}})


@pytest.mark.parametrize(
    ("body", "how"),
    [
        (b'{"content":"' + LARGE.encode(), {"end": False}),
        (b'{"content":"' + LARGE.encode(), {}),
        (said({"content": LARGE + "\0"}), {}),
        (said({"content": LARGE}), {"kind": b"text/plain"}),
        (said({"content": LARGE * 8}), {}),
        (said({LARGE: LARGE}), {}),
        (said(NO_KIND), {}),
    ],
    ids=["given up", "no JSON", "a NUL", "another type", "too large", "an unknown field", "no kind"],
)
async def test_a_body_that_is_refused_or_given_up_is_let_go(body: bytes, how: dict[str, Any]) -> None:
    asked = [*take_a_body(), ("POST", MCP)]
    assert len(asked) > 30
    async with http_door() as door:
        app = app_of(door.desk)
        with no_collection() as large_in_garbage:
            for method, path in asked:
                await send(app, method, path, body, **how)
            assert large_in_garbage() == 0


async def _furnished(door: Door) -> ASGIApp:
    await door.saved(ALICE, id="mine", content=LARGE)
    return app_of(door.desk)


async def test_a_payload_that_is_refused_among_others_is_let_go() -> None:
    refused: list[dict[str, Any]] = [
        NO_KIND,
        ITEM | {"id": "mine"},
        ITEM | {"scopes": ["nothing:x"]},
        ITEM | {"supersedes": "mine"},
    ]
    async with http_door() as door:
        app = await _furnished(door)
        with no_collection() as large_in_garbage:
            for each in refused:
                assert await send(app, "POST", "/api/knowledge/batch", said({"items": [each]})) == 200
                assert large_in_garbage() == 0, each.keys()


@pytest.mark.parametrize(
    "call",
    [
        called("knowledge_list"),
        called("knowledge_save", **ITEM),
        called("knowledge_save", **NO_KIND),
        called("knowledge_save", **ITEM, id="mine"),
        called("memory_recall", message=LARGE),
        called("nothing", message=LARGE),
        said({"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": {"uri": "knowledge://mine"}}),
    ],
    ids=["a list", "a save", "a refused one", "a repeated one", "a recall", "no tool", "a resource"],
)
async def test_what_a_tool_is_called_with_and_answers_is_let_go(call: bytes) -> None:
    async with http_door() as door:
        app = await _furnished(door)
        async with app.router.lifespan_context(app):  # type: ignore[attr-defined]
            await send(app, "POST", MCP, call)  # loads what answers
            with no_collection() as large_in_garbage:
                assert await send(app, "POST", MCP, call) == 200
                assert large_in_garbage() == 0

"""The official client of the protocol, over each transport and in both of its eras."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from ledger.event import JsonObject
from tests.patience import PATIENCE
from tests.processes.started import ENVIRONMENT, KLEDGER, ROOT, can_fork, fork_server

Way = Literal["http", "http of 2025", "stdio", "stdio of 2025"]
WAYS: tuple[Way, ...] = ("http", "http of 2025", "stdio", "stdio of 2025")


@asynccontextmanager
async def connected(
    url: str,
    way: Way,
    *,
    token: str | None = None,
    log: Path | None = None,
    settings: Mapping[str, str] | None = None,
    **who: str,
) -> AsyncIterator[Client]:
    """A client of the node at `url`, which asks as `who` (`agent="scribe"`); over stdio with `settings` of its own."""
    mode = "legacy" if way.endswith("2025") else "auto"
    if way.startswith("http"):
        headers = {f"X-Ledger-{kind.title()}": name for kind, name in who.items()}
        headers |= {"Authorization": f"Bearer {token}"} if token else {}
        http = httpx2.AsyncClient(headers=headers, trust_env=False, timeout=PATIENCE)
        async with http, Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client:
            yield client
        return
    program = stdio(url, token=token, **who)
    program.env = {**(program.env or {}), **(settings or {})}
    if log is not None:  # what the server says on stderr
        program.args = ["-c", f'exec "$@" 2>>"{log}"', "sh", program.command, *program.args]
        program.command = "sh"
    async with Client(program, mode=mode) as client:
        yield client


def stdio(url: str, *, token: str | None = None, **who: str) -> StdioServerParameters:
    """How a client starts `kledger mcp`: forked, where it can be."""
    named = [word for kind, name in who.items() for word in (f"--{kind}", name)]
    command = KLEDGER
    if can_fork(ENVIRONMENT):
        command = [
            sys.executable,
            "-I",
            "-S",
            str(ROOT / "tests" / "processes" / "launch.py"),
            fork_server.at,
            str(ROOT),
        ]
    return StdioServerParameters(
        command=command[0],
        args=[*command[1:], "mcp", "--url", url, *named],
        env={"PYTHONPATH": os.environ.get("PYTHONPATH", str(ROOT)), **({"KLEDGER_TOKEN": token} if token else {})},
        cwd=ROOT,
    )


async def told(client: Client, tool: str, arguments: Mapping[str, Any], **meta: Any) -> JsonObject:
    """What a tool answers; the client itself holds it against the tool's output schema."""
    stated: Any = meta or None
    result = await client.call_tool(tool, dict(arguments), meta=stated)
    assert not result.is_error, result.content
    document: JsonObject = result.structured_content
    return document


async def refused(client: Client, tool: str, arguments: Mapping[str, Any]) -> str:
    """The code of the error that a tool answers with, as a model reads it."""
    result = await client.call_tool(tool, dict(arguments))
    assert result.is_error, result.content
    assert result.structured_content is None, "it would not fit the tool's output schema"
    (text,) = result.content
    assert text.type == "text"
    error = json.loads(text.text)["error"]
    assert len(error["message"]) > 20
    code: str = error["code"]
    return code

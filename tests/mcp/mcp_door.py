"""A node's /mcp over a live desk, asked as an MCP client asks it, one message at a time."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx

from ledger.event import JsonObject
from tests.doors.live_desk import LiveDesk, live_desk
from tests.doors.one_app import app_of

NOW = "2025-11-25"  # the newest revision in which a message stands alone without an envelope
TAKES = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": NOW}


class McpDoor:
    """The endpoint, and the HTTP door beside it."""

    def __init__(self, desk: LiveDesk, client: httpx.AsyncClient) -> None:
        self.desk = desk
        self.client = client

    async def post(self, method: str, who: Mapping[str, str] | None = None, **params: Any) -> httpx.Response:
        """Send one request of the protocol."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return await self.client.post("/mcp", json=message, headers={**TAKES, **(who or {})})

    async def call(self, tool: str, who: Mapping[str, str] | None = None, **arguments: Any) -> JsonObject:
        """What a tool answers, which has to be no error."""
        result = await self._result(tool, who, arguments)
        assert not result["isError"], result
        told: JsonObject = result["structuredContent"]
        return told

    async def refused(self, tool: str, who: Mapping[str, str] | None = None, **arguments: Any) -> str:
        """The code of the error that a tool answers with."""
        result = await self._result(tool, who, arguments)
        assert result["isError"], result
        error = json.loads(result["content"][0]["text"])["error"]
        assert len(error["message"]) > 20
        code: str = error["code"]
        return code

    async def _result(self, tool: str, who: Mapping[str, str] | None, arguments: Mapping[str, Any]) -> JsonObject:
        answer = await self.post("tools/call", who, name=tool, arguments=arguments)
        assert answer.status_code == 200, answer.text
        result: JsonObject = answer.json()["result"]
        return result

    async def metric(self, line: str, who: Mapping[str, str] | None = None) -> float:
        """The value of one line of /metrics, 0 when it is not there."""
        text = (await self.client.get("/metrics", headers=who or {})).text
        return next((float(one.rpartition(" ")[2]) for one in text.splitlines() if one.startswith(line)), 0.0)


@asynccontextmanager
async def mcp_door(**options: Any) -> AsyncIterator[McpDoor]:
    """The door, open until the block ends."""
    async with live_desk() as desk:
        app = app_of(desk, **options)
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8420")
        async with app.router.lifespan_context(app), client:
            yield McpDoor(desk, client)

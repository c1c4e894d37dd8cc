"""Calls of tools, as an agent makes them over MCP."""

from __future__ import annotations

import json
from typing import Any

import httpx


def tool(url: str, user: str, name: str, arguments: dict[str, Any], *, refused: bool = False) -> Any:
    """The document that a tool answers a user with; that of its refusal, where it is to refuse."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
    spoken = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    answer = httpx.post(f"{url}/mcp", json=message, headers={**spoken, "X-Ledger-User": user}, timeout=60)
    assert answer.status_code == 200, answer.text
    result = answer.json()["result"]
    assert result["isError"] == refused, result
    return json.loads(result["content"][0]["text"])

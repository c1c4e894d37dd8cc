"""MCP at a node: who is let in, for whom a tool speaks, and what is counted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from producers.access.book import TokenBook
from producers.access.limits import Limits
from producers.access.tokens import create_token, tokens_file
from producers.mcp import other_names
from producers.mcp.catalogue import BY_NAME
from producers.mcp.lines import refusal_of
from tests.mcp.mcp_door import TAKES, mcp_door
from tests.mcp.test_stdin_ends import LINES

ITEM: dict[str, Any] = {"task": "Mend a pump", "content": "Replace the seal first.", "types": ["tool"]}
SCRIBE = {"X-Ledger-Agent": "scribe"}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def test_what_one_caller_saves_it_finds_at_once_and_another_does_not() -> None:
    async with mcp_door() as door:
        saved = await door.call("knowledge_save", SCRIBE, **ITEM)
        assert [item["id"] for item in (await door.call("knowledge_list", SCRIBE))["results"]] == [saved["id"]]
        assert (await door.call("knowledge_list", {"X-Ledger-Agent": "other"}))["count"] == 0
        assert await door.refused("knowledge_update", knowledge_id=saved["id"], update_score=4) == "unknown_knowledge"
        assert await door.refused("resource_get", resource_id="r" * 100_000) == "invalid_payload"


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        *[(name, "knowledge_search") for name in ("search_knowledge", "knowledgeSearch", "knowledge-serach", "search")],
        *[(name, "memory_save") for name in ("add_memories", "mcp__kledger__memory_save", "remember_memory")],
        *[(name, "memory_recall") for name in ("search_memory", "recall", "memory_search")],
        *[(name, "memory_save") for name in ("archival_memory_insert", "add_episode")],
        *[(name, "memory_recall") for name in ("archival_memory_search", "search_memory_facts", "reflect")],
        *[(name, "profile_update") for name in ("core_memory_append", "core_memory_replace")],
        ("append_messages", "session_append"),
        ("deleteMemory", "knowledge_retire"),
        ("get_conversation", "session_context"),
    ],
)
async def test_a_tool_under_another_name_is_answered_with_the_one_that_is_here(name: str, tool: str) -> None:
    async with mcp_door() as door:
        error = (await door.post("tools/call", name=name, arguments={})).json()["error"]
        assert error["message"] == f"there is no tool '{name}'; is {tool} meant? tools/list names them all"


async def test_a_tool_that_is_like_none_is_answered_with_where_all_of_them_are() -> None:
    assert {*other_names.ELSEWHERE.values()} <= {*BY_NAME}
    async with mcp_door() as door:
        for name in ("pay_invoice", "", "x" * 100_000):
            error = (await door.post("tools/call", name=name, arguments={})).json()["error"]
            assert error["message"] == f"there is no tool '{name[:100]}': tools/list names them all"


async def test_whoever_names_nobody_is_an_agent_that_finds_its_own_and_not_the_operator() -> None:
    async with mcp_door() as door:
        await door.call("knowledge_save", **ITEM)
        (item,) = (await door.call("knowledge_list"))["results"]
        assert (item["owner"], item["source"]["agent_id"]) == ("agent:research_agent", "research_agent")
        assert await door.refused("knowledge_save", **ITEM, owner="user:ada") == "not_owner"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"X-Ledger-Usr": "ada"}, "invalid_payload"),
        ({"X-Kledger-User": "ada"}, "invalid_payload"),
        ({"X-User": "ada"}, "invalid_payload"),
        ({"X-Ledger-User": ""}, "illegal_scope"),
        ({"X-Ledger-User": "%ff"}, "illegal_scope"),
        ({"X-Ledger-Trace-Id": "t" * 2_000}, "invalid_payload"),
    ],
)
async def test_an_identity_that_cannot_be_is_an_error_of_the_call(headers: dict[str, str], code: str) -> None:
    async with mcp_door() as door:
        assert await door.refused("knowledge_list", headers) == code
        for asked in ("prompts/list", "resources/list"):
            error = (await door.post(asked, headers)).json()["error"]
            assert (error["code"], error["data"]["code"]) == (-32602, code)
        assert (await door.desk.ledger.head()).position == 0


async def test_a_token_decides_for_whom_a_tool_speaks(tmp_path: Path) -> None:
    _, ada = create_token(tmp_path, {"user": ["ada"], "project": ["harbor"]})
    _, analyst = create_token(tmp_path, {}, role="analyst")
    async with mcp_door(tokens=TokenBook(tokens_file(tmp_path))) as door:
        for who in ({}, bearer("kledger_" + "x" * 43), {"Authorization": "Basic YTpi"}):
            answer = await door.post("tools/list", who)
            assert answer.status_code == 401
            assert answer.headers["WWW-Authenticate"] == "Bearer"
        await door.call("knowledge_save", bearer(ada), **ITEM)
        (item,) = (await door.call("knowledge_list", bearer(ada)))["results"]
        assert item["owner"] == "user:ada"
        assert await door.refused("knowledge_list", {**bearer(ada), "X-Ledger-User": "bob"}) == "forbidden"
        assert (
            await door.refused("knowledge_save", {**bearer(ada), **SCRIBE}, **ITEM)
            == await door.refused("knowledge_save", bearer(ada), **ITEM, scopes=["org:lantern"])
            == "forbidden"
        )
        assert await door.refused("knowledge_list", bearer(analyst)) == "forbidden"


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example:8420"}, {"Origin": "https://evil.example"}, {"Origin": "null"}]
)
async def test_no_page_of_another_site_reaches_the_tools_through_a_browser(headers: dict[str, str]) -> None:
    async with mcp_door() as door:
        assert (await door.post("tools/list", headers)).status_code == 403
        assert (await door.post("tools/list", {"Origin": "http://127.0.0.1:8420"})).status_code == 200


async def test_there_is_no_stream_to_get_and_no_session_to_end() -> None:
    async with mcp_door() as door:
        for method in ("GET", "DELETE", "PUT"):
            answer = await door.client.request(method, "/mcp", headers=TAKES)
            assert (answer.status_code, answer.headers["Allow"]) == (405, "POST")
        begun = await door.post(
            "initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "test", "version": "1"}
        )
        assert "mcp-session-id" not in begun.headers
        told = begun.json()["result"]
        assert told["serverInfo"]["name"] == "kledger"
        assert "knowledge_search" in told["instructions"]


async def test_a_tool_call_is_one_request_for_the_rate_and_named_in_the_metrics() -> None:
    async with mcp_door(limits=Limits(rate=0.01, burst=4)) as door:
        await door.call("knowledge_list")
        await door.refused("knowledge_update", knowledge_id="never-saved", update_score=4)
        assert (await door.post("tools/call", name="drop_table", arguments={})).json()["error"]["code"] == -32602
        calls = "kledger_mcp_tool_calls_total"
        assert await door.metric(f'{calls}{{outcome="ok",tool="knowledge_list"}}') == 1
        assert (await door.post("tools/list")).status_code == 429
    async with mcp_door() as door:
        await door.refused("knowledge_update", knowledge_id="never-saved", update_score=4)
        await door.call("knowledge_list")
        assert await door.metric(f'{calls}{{outcome="unknown_knowledge",tool="knowledge_update"}}') == 1
        assert await door.metric('kledger_http_requests_total{method="POST",route="/mcp",status="200"}') == 2
        assert await door.metric('kledger_http_requests_total{method="GET",route="/api/knowledge",status="200"}') == 1


@pytest.mark.parametrize("request_id", [None, True, 1.5, [1], {}])
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_a_call_whose_id_is_none_is_refused_and_not_taken_for_a_notification(
    request_id: Any, revision: str
) -> None:
    message = {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": {"name": "knowledge_list"}}
    async with mcp_door() as door:
        said = {**TAKES, "MCP-Protocol-Version": revision}
        answer = await door.client.post("/mcp", json=message, headers=said)
        assert (answer.status_code, answer.json()["id"], answer.json()["error"]["code"]) == (400, None, -32600)
        told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await door.client.post("/mcp", json=told, headers=said)).status_code == 202


@pytest.mark.parametrize("what", LINES)
async def test_a_body_that_is_no_message_is_refused_in_the_words_of_the_command(what: str) -> None:
    body, request_id, code = LINES[what]
    async with mcp_door() as door:
        answer = await door.client.post("/mcp", content=body, headers={**TAKES, "Content-Type": "application/json"})
        error = answer.json()["error"]
        assert (answer.json()["id"], error["code"]) == (request_id, code)
        if (refusal := refusal_of(body)) is not None:
            assert (answer.status_code, error["message"]) == (400, refusal.error.message)


async def test_a_message_that_is_too_long_or_no_message_is_refused() -> None:
    async with mcp_door(limits=Limits(batch_body=4_000)) as door:
        answer = await door.post("tools/call", name="knowledge_save", arguments={**ITEM, "content": "x" * 5_000})
        assert answer.status_code == 413
        broken = await door.client.post("/mcp", content=b"{", headers={**TAKES, "Content-Type": "application/json"})
        assert broken.status_code == 400
        assert (await door.call("knowledge_list"))["count"] == 0

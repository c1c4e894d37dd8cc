"""Attacks by tools: calls over MCP that name what is another's. Each is an error of the call, and changes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.attacks.guarded_node import ADAS_CREDENTIAL, ADAS_RESOURCE, ADAS_SECRET, Guarded

SPOKEN = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
ITEM = {"task": "t", "content": "c", "types": ["tool"]}
SEAL = "sealed:v1:user:ada:AAAA"

# By bob's token: the tool, its arguments, and the code of the error.
ATTACKS: dict[str, tuple[str, dict[str, Any], str]] = {
    "judging what one may not see": (
        "knowledge_update", {"knowledge_id": "adas-item", "add_harmful_case": {"reason": "r"}}, "unknown_knowledge",
    ),
    "scoring what one may not see": (
        "knowledge_update", {"knowledge_id": "adas-item", "update_score": 1}, "unknown_knowledge",
    ),
    "judging a path": (
        "knowledge_update", {"knowledge_id": "../admin/status", "update_score": 1}, "unknown_knowledge",
    ),
    "judging with a query": (
        "knowledge_update", {"knowledge_id": "adas-open/acl?x=", "update_score": 1}, "unknown_knowledge",
    ),
    "saving for another": ("knowledge_save", {**ITEM, "owner": "user:ada"}, "not_owner"),
    "saving for a node": ("knowledge_save", {**ITEM, "owner": "user:local"}, "not_owner"),
    "saving into another's memory": ("knowledge_save", {**ITEM, "scopes": ["user:ada"]}, "forbidden"),
    "saving into a team that one is not in": ("knowledge_save", {**ITEM, "scopes": ["team:platform"]}, "forbidden"),
    "saving a seal written by hand": ("knowledge_save", {**ITEM, "content": SEAL}, "invalid_payload"),
    "applying a plan that is nobody's": ("knowledge_slim", {"apply": "slim-1"}, "unknown_process"),
    "applying a path": ("knowledge_slim", {"apply": "../knowledge/adas-item"}, "unknown_process"),
    "reading another's secret": ("resource_get", {"resource_id": ADAS_RESOURCE}, "unknown_resource"),
    "reading another's secret by a history": (
        "resource_get", {"resource_id": f"{ADAS_RESOURCE}/history"}, "unknown_resource",
    ),
    "stating another's resource anew": (
        "resource_save", {"resource_id": ADAS_RESOURCE, "title": "mine"}, "not_owner",
    ),
    "keeping a resource for another": (
        "resource_save", {"resource_id": "bobs/new", "title": "t", "owner": "user:ada"}, "not_owner",
    ),
    "sharing a secret with whom one is not": (
        "resource_save",
        {"resource_id": "bobs/new", "title": "t", "secure_body": "s", "shared_with": ["user:ada"]},
        "forbidden",
    ),
    "a goal that no event could hold": ("goal_focus", {"goal_id": "g", "description": SEAL}, "invalid_payload"),
    "a search that no recall could hold": ("knowledge_search", {"query": SEAL}, "invalid_payload"),
    "a start that no recall could hold": ("knowledge_startup", {"query": SEAL}, "invalid_payload"),
}  # fmt: skip


def called(target: Guarded, tool: str, arguments: dict[str, Any], holder: str = "bob") -> tuple[bool, dict[str, Any]]:
    """Whether a call was an error, and its document."""
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }
    with target.client(holder) as client:
        answer = client.post("/mcp", json=message, headers=SPOKEN)
    for secret in (ADAS_SECRET, ADAS_CREDENTIAL, *target.tokens.values()):
        assert secret not in answer.text
    result = answer.json()["result"]
    return bool(result["isError"]), json.loads(result["content"][0]["text"])


@pytest.mark.parametrize("name", ATTACKS)
def test_a_call_that_names_what_is_anothers_is_an_error_and_changes_nothing(unharmed: Guarded, name: str) -> None:
    tool, arguments, code = ATTACKS[name]
    failed, told = called(unharmed, tool, arguments)
    assert (failed, told["error"]["code"]) == (True, code), told


def test_many_verdicts_on_what_is_hidden_are_refused_one_by_one_as_on_what_is_not_there(unharmed: Guarded) -> None:
    verdicts = [{"knowledge_id": name, "is_helpful": False} for name in ("adas-item", "not-there")]
    failed, told = called(unharmed, "knowledge_batch_update", {"feedback_list": verdicts})
    assert (failed, told["updated"]) == (False, 0)
    hidden, missing = (str(each["error"]).replace(each["knowledge_id"], "ID") for each in told["refused"])
    assert hidden == missing


@pytest.mark.parametrize("scopes", [["user:ada"], ["team:platform"], ["user:ada", "public"]])
def test_lists_and_searches_show_no_more_for_the_scopes_that_are_named(target: Guarded, scopes: list[str]) -> None:
    _, listed = called(target, "knowledge_list", {"scopes": scopes, "limit": 100})
    assert "adas-item" not in {item["id"] for item in listed["results"]}
    _, found = called(target, "knowledge_search", {"query": "where the key is", "top_k": 100, "min_score": 0})
    assert "adas-item" not in {item["id"] for item in found["results"]}


@pytest.mark.parametrize("more", [{"user": "ada"}, {"caller": "user:ada"}, {"headers": {"X-Ledger-User": "ada"}}])
def test_no_argument_says_who_asks(unharmed: Guarded, more: dict[str, Any]) -> None:
    message = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": "knowledge_list", "arguments": more, "_meta": more},
    }
    with unharmed.client("bob") as client:
        text = client.post("/mcp", json=message, headers=SPOKEN).text
    assert ADAS_SECRET not in text
    assert "adas-item" not in text

"""What do `kledger startup`, `focus`, `goal`, `prompt` and `profile prompt|history` send, and show a reader?"""

from __future__ import annotations

from typing import Any

import pytest
from typer.testing import CliRunner, Result

from producers.cli.main import app
from tests.doors.scripted_node import ScriptedNode


def kledger(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--user", "mei"])


def test_a_start_is_shown_as_the_prompt_that_it_makes(node: ScriptedNode) -> None:
    node.says("GET /api/recall/startup", {"prompt": "📚 相关知识 (1 条):\n1. \x1b[31mred", "count": 1})
    node.says("GET /api/recall/startup", {"prompt": "", "count": 0})
    shown = kledger("startup", "修复测试", "--types", "tool,plan", "--trace", "t-1", "--no-record")
    assert shown.stdout.startswith("📚 相关知识 (1 条):\n1. \\x1b[31mred")
    (asked,) = node.asked
    assert asked.query == {
        "q": "修复测试",
        "top_k": "5",
        "profile_k": "20",
        "min_score": "3",
        "types": "tool,plan",
        "record": "false",
    }
    assert (asked.headers["x-ledger-user"], asked.headers["x-ledger-trace-id"]) == ("mei", "t-1")
    assert "nothing is known yet" in kledger("startup").stdout


def test_a_goal_is_focused_and_shown(node: ScriptedNode) -> None:
    node.says("POST /api/goals/run%2F1/focus", {"title": "✅ Goal 已聚焦", "output": "当前 Goal: 发布", "position": 3})
    assert kledger("focus", "run/1", "发布", "--top-k", "2").stdout == "✅ Goal 已聚焦\n当前 Goal: 发布\n"
    (asked,) = node.told
    assert asked.body == {"description": "发布", "top_k": 2, "min_score": 3}
    told: dict[str, Any] = {
        "goal_id": "run/1",
        "description": "发布",
        "owner": "user:mei",
        "focuses": 2,
        "focused_at": "2026-03-05T12:00:00.5Z",
        "trace_id": None,
        "section": "📚 相关知识 (0 条):",
        "left_out": 1,
    }
    node.says("GET /api/goals/run%2F1", told)
    shown = kledger("goal", "run/1", "--owner", "user:mei").stdout
    for part in (
        "发布",
        "user:mei",
        "2 times",
        "not stated",
        "📚 相关知识 (0 条):",
        "1 more were closed, retired or erased",
    ):
        assert part in shown
    assert node.asked[-1].query["owner"] == "user:mei"


def test_prompts_are_listed_and_printed(node: ScriptedNode) -> None:
    node.says("GET /api/prompts", {"prompts": [{"name": "research", "title": "调研", "languages": ["zh", "en"]}]})
    node.says("GET /api/prompts/research", {"text": "# Research\n"})
    listed = kledger("prompt").stdout
    assert "research" in listed
    assert "zh, en" in listed
    assert kledger("prompt", "research", "--language", "en").stdout == "# Research\n"
    assert node.asked[-1].query == {"language": "en"}
    node.refuses("GET /api/prompts/nothing", "unknown_prompt", 404, "there is no such prompt")
    assert kledger("prompt", "nothing").exit_code == 1


def test_a_memory_is_printed_as_a_section_and_with_its_history(node: ScriptedNode) -> None:
    node.says("GET /api/v1/memories/user/prompt", {"prompt": "<!-- USER_MEMORY_START -->\n- occupation: 厨师"})
    assert "- occupation: 厨师" in kledger("profile", "prompt", "user", "--as-of", "7").stdout
    assert node.asked[-1].query == {"as_of": "7"}
    node.says("GET /api/v1/memories/work/prompt", {"prompt": None})
    assert "there is no active work memory" in kledger("profile", "prompt", "work").stdout
    version = {"version": 2, "valid_from": 9, "valid_from_time": "2026-03-05T12:00:00.1Z", "status": "active"}
    node.says("GET /api/v1/memories/user/history", {"versions": [{**version, "change": "patched"}]})
    told = kledger("profile", "history", "user").stdout
    for part in ("2026-03-05T12:00:00Z", "patched", "active"):
        assert part in told


@pytest.mark.parametrize(("locale", "asked"), [("zh_CN.UTF-8", "zh"), ("en_US.UTF-8", "en"), ("C", None)])
def test_a_command_asks_in_the_language_of_its_terminal(
    node: ScriptedNode, monkeypatch: pytest.MonkeyPatch, locale: str, asked: str | None
) -> None:
    for name in ("LC_MESSAGES", "KLEDGER_LANGUAGE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LC_ALL", locale)
    node.says("GET /api/recall/startup", {"prompt": "", "count": 0})
    assert kledger("startup").exit_code == 0
    assert node.asked[-1].headers.get("accept-language") == asked
    monkeypatch.setenv("KLEDGER_LANGUAGE", "zh")
    assert kledger("startup", "--language", "en").exit_code == 0
    assert (node.asked[-1].headers["accept-language"], node.asked[-1].query["language"]) == ("zh", "en")
    monkeypatch.setenv("KLEDGER_LANGUAGE", "klingon")
    assert kledger("startup").exit_code == 1


RECALL = {
    "recall_id": "recall-1", "kind": "page", "time": "2026-03-05T12:00:00.123456Z", "position": 7, "view_position": 6,
    "actor": "user:mei", "trace_id": "t-1", "message_id": None, "session": None, "intent": None, "language": None,
    "policy": "p", "query": "where is\nthe lantern", "of": 2,
}  # fmt: skip
PLACE = {"rank": 2, "item_version": 3, "relevance": 0.5, "match": None}


def test_recalls_of_before_are_listed_with_what_narrows_them(node: ScriptedNode) -> None:
    page = {"results": [RECALL], "count": 1, "total": 4, "next": 7, "position": 9}
    node.says("GET /api/recalls", page)
    node.says("GET /api/recalls", {**page, "results": [], "total": 0})
    shown = kledger("recalls", "--trace", "t-1", "--kind", "page", "--since", "3", "--limit", "1")
    assert node.asked[-1].query == {"trace": "t-1", "kind": "page", "since": "3", "limit": "1"}
    assert "where is the lantern" in shown.stdout
    assert "1 of 4 recalls, as of position 9" in shown.stdout
    node.says("GET /api/knowledge/k%2F1/recalls", {**page, "id": "k/1", "results": [RECALL | PLACE]})
    assert "2 of 2" in kledger("recalls", "k/1").stdout
    assert "no recall to show" in kledger("recalls", "k/1", "--actor", "agent:coder").stdout
    assert node.asked[-1].query == {"item": "k/1", "actor": "agent:coder", "limit": "20"}


def test_what_was_served_is_shown_with_the_version_that_holds_now(node: ScriptedNode) -> None:
    item = {
        **PLACE,
        "id": "k-1",
        "task": "Lantern",
        "content": "In the hall.",
        "version_now": 4,
        "status_now": "retired",
    }
    node.says("GET /api/recalls/recall-1", RECALL | {"results": [item], "left_out": 1, "degraded": []})
    shown = kledger("served", "recall-1").stdout
    assert "version 3, which is at version 4 now, retired" in shown
    assert "In the hall." in shown
    assert "2 items served; 1 more may not be seen now" in shown


def test_an_explained_search_says_why_each_item_stands_where_it_does(node: ScriptedNode) -> None:
    factors = {"keyword": 1.0, "vector": 0.1, "recency": 0.02, "lent": 0.0, "quality": 1.0}
    candidate = {
        "id": "k-1", "task": "t", "version": 1, "keyword": 9.0, "vector": 0.3, "freshness": 1.0, "quality": 4.0,
        "scope": "public", "scope_priority": 1.0, "relevance": 1.12, "worth": 1.12, "match": 0.25, "beside": None,
        "lent": 0.0, "factors": factors, "rank": None, "left_out": "min_score",
    }  # fmt: skip
    weights = {"vector": 0.3, "recency": 0.02, "quality_sway": 0.05}
    told = {"candidates": [candidate], "considered": 3, "weights": weights, "policy": "p1"}
    node.says("GET /api/knowledge/search", {"results": [], "count": 0, "position": 9, "explained": told})
    shown = kledger("search", "lantern", "--explain", "--kind", "page").stdout
    assert node.asked[-1].query.items() >= {"explain": "true", "kind": "page"}.items()
    assert "its score is too low" in " ".join(shown.split())
    assert "1.120" in shown
    assert "3 candidates (2 more are not shown), by policy p1" in shown

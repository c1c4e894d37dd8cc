"""What do `kledger startup`, `focus`, `goal`, `prompt` and `profile prompt|history` send, and show a reader?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from producers.cli.main import app
from tests.doors.scripted_node import ScriptedNode, scripted_node


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedNode]:
    with scripted_node() as running:
        monkeypatch.setenv("KLEDGER_URL", running.url)
        yield running


def kledger(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments, "--user", "mei"])


def test_a_start_is_shown_as_the_prompt_that_it_makes(node: ScriptedNode) -> None:
    node.says("GET /api/recall/startup", {"prompt": "📚 相关知识 (1 条):\n1. \x1b[31mred", "count": 1})
    node.says("GET /api/recall/startup", {"prompt": "", "count": 0})
    shown = kledger("startup", "修复测试", "--types", "tool,plan", "--trace", "t-1", "--no-record")
    assert shown.stdout.startswith("📚 相关知识 (1 条):\n1. \N{REPLACEMENT CHARACTER}[31mred")
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

"""An agent's day on a real node: it starts, focuses a goal, researches, focuses again; nobody else learns of it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from typer.testing import CliRunner

from kledger import LedgerClient
from kledger.contract.errors import UnknownGoal
from producers.cli.main import app
from tests.journeys.running_node import RunningNode, caught_up

WORD = "zanzibarx"  # that no other test's knowledge holds


@pytest.fixture
def noor(ledger: LedgerClient) -> LedgerClient:
    return ledger.acting_as(user="noor", agent="planner").in_language("zh")


def kledger(node: RunningNode, *arguments: str) -> Any:
    """What the command answers with --json; it has to exit with 0."""
    ran = CliRunner(env={"KLEDGER_URL": node.url}).invoke(app, [*arguments, "--json"])
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.stdout)


def test_an_agent_that_starts_gets_the_profile_then_what_is_known(shared_node: RunningNode, noor: LedgerClient) -> None:
    noor.profiles.put("user", {"occupation": "项目经理", "people": [{"name": "李雷", "relationship": "同事"}]})
    noor.save("沟通偏好", "请用中文, 先给结论", ["user_profile"], tags={"category": "preference"})
    known = noor.save(f"{WORD} 的发布流程", f"{WORD}: 先灰度, 再全量", ["plan"])
    told = noor.within(trace_id="start-1").startup(f"发布 {WORD}")
    assert [item["task"] for item in told["profile"]] == ["沟通偏好"]
    assert known["id"] in [item["id"] for item in told["results"]]
    parts = ["<!-- USER_MEMORY_START -->", "- 职业: 项目经理", "- 李雷", "👤 用户画像 (1 条):", "📚 相关知识"]
    assert sorted(parts, key=told["prompt"].index) == parts
    assert kledger(shared_node, "startup", WORD, "--user", "noor")["profile"] == told["profile"]
    caught_up(noor.acting_as())  # an answer does not wait until the view has its record
    served = noor.acting_as().sql(
        f"SELECT DISTINCT kind, trace_id FROM recalls WHERE recall_id = '{told['recall_id']}'"
    )
    assert served["rows"] == [["startup", "start-1"]]
    assert (noor.profiles.prompt("user") or "nothing") in told["prompt"]


def test_a_goal_is_focused_researched_and_focused_again(shared_node: RunningNode, noor: LedgerClient) -> None:
    goal = f"迁移 {WORD} 到新机房"
    first = noor.within(trace_id="trace-goal").focus("goal-123", goal)
    assert first["title"] == "✅ Goal 已聚焦"
    assert first["output"].startswith(f"当前 Goal: {goal}\n\n📚 相关知识 (")
    assert "知识不足" in noor.prompt("knowledge_management")["text"]
    found = noor.save(
        f"把 {WORD} 迁移到新机房", f"迁移 {WORD}: 先同步数据, 再切流量", ["strategy"], scopes=["user:noor"]
    )
    again = kledger(shared_node, "focus", "goal-123", goal, "--user", "noor", "--trace", "trace-goal")
    assert found["id"] in [item["id"] for item in again["metadata"]["items"]]
    shown = kledger(shared_node, "goal", "goal-123", "--user", "noor")
    assert (shown["focuses"], shown["trace_id"]) == (2, "trace-goal")
    assert again["output"].endswith(shown["section"])
    edges = noor.lineage("trace:trace-goal")["edges"]
    assert {edge["event_type"] for edge in edges} >= {"goal.focused", "recall.served"}
    with pytest.raises(UnknownGoal):
        noor.acting_as(user="somebody").goal("goal-123")
    noor.retire(found["id"])
    later = noor.goal("goal-123")
    assert later["left_out"] == 1
    assert found["id"] not in str(later)

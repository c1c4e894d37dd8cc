"""The lines of a recall's text: those of source 004 §3.2, word for word, with what they are made from."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kledger.contract.language import Language
from kledger.contract.words import RecallLayer
from projections.search.prompt.memory_text import Told, memory_text
from projections.search.prompt.stated import stated_at

NOW = datetime(2026, 2, 12, 12, tzinfo=UTC)


def lines(content: str, layer: RecallLayer, language: Language = "zh", sources: int = 1, **stated: Any) -> list[str]:
    """The lines of a text with one item, without what opens and closes it."""
    memory = stated.pop("memory", {})
    item = {
        "id": "m-1",
        "task": content,
        "content": content,
        "owner": "user:ann",
        "scopes": ["project:shop"],
        "version": 1,
        "created_at": "2026-02-09T08:00:00Z",
        "updated_at": "2026-02-12T11:00:00Z",
        "eval": {"confidence": 0.95},
        **({} if memory is None else {"memory": {"layer": "semantic", **memory}}),
        **stated,
    }
    told = Told(item, layer, sources, stated="2026-02-10T08:00:00Z")
    text, count = memory_text([told], language, NOW, person="user:ann")
    assert count == 1
    return text.split("\n")[2:-1]


def test_a_preference_has_its_confidence_and_sources() -> None:
    memory = {"category": "preference"}
    told = lines("偏好 TypeScript + React 技术栈", "semantic", sources=12, memory=memory, scopes=["user:ann"])
    line = "- 偏好 TypeScript + React 技术栈 (置信度: 95%, 来源: 12次对话)"
    assert told == ["<user_preferences>", line, "</user_preferences>"]


@pytest.mark.parametrize("category", ["preference", "user_preference", "Preferences", "用户偏好"])
def test_a_preference_that_a_project_reads_is_a_preference_still(category: str) -> None:
    told = lines("偏好 TypeScript", "semantic", memory={"category": category}, scopes=["user:ann", "project:shop"])
    assert told[0] == "<user_preferences>"


@pytest.mark.parametrize("scopes", [["user:ann"], ["user:ann", "project:shop"], ["public"]])
def test_a_profile_is_told_among_the_preferences_with_what_it_is_about(scopes: list[str]) -> None:
    told = lines(
        "先给结论，再给理由", "plain", sources=3, task="回答方式", memory=None, types=["user_profile"], scopes=scopes
    )
    line = "- 回答方式: 先给结论，再给理由 (置信度: 95%, 来源: 3次对话)"
    assert told == ["<user_preferences>", line, "</user_preferences>"]


def test_a_profile_of_another_user_says_whose_it_is() -> None:
    (line,) = lines("先给结论", "plain", memory=None, types=["user_profile"], owner="user:bo", scopes=["public"])[1:-1]
    assert line.endswith("关于 user:bo)")


@pytest.mark.parametrize(
    ("owner", "scopes", "note"),
    [
        ("user:ann", ["public"], ""),
        ("agent:scribe", ["user:ann"], ""),
        ("user:bo", ["user:ann"], ""),
        ("agent:scribe", ["public"], ""),
        ("user:bo", ["public"], ", 关于 user:bo"),
        ("agent:scribe", ["user:bo", "team:web"], ", 关于 user:bo"),
    ],
)
def test_a_preference_of_another_user_says_whose_it_is(owner: str, scopes: list[str], note: str) -> None:
    memory = {"category": "preference"}
    (line,) = lines("喜欢简短的回答", "semantic", memory=memory, owner=owner, scopes=scopes)[1:-1]
    assert line == f"- 喜欢简短的回答 (置信度: 95%, 来源: 1次对话{note})"


@pytest.mark.parametrize(
    ("layer", "kind"),
    [
        *(("semantic", None), ("semantic", "decision"), ("short", "follow_up"), ("episodic", None)),
        *(("procedural", None), ("plain", None), ("shared", "known_issue"), ("shared", "project_context")),
    ],
)
def test_what_another_says_of_themselves_names_who_said_it_in_every_section(layer: RecallLayer, kind: str) -> None:
    def line(content: str, owner: str, language: Language = "en") -> str:
        memory = None if layer == "plain" else {"kind": kind}
        (told,) = lines(content, layer, language, owner=owner, memory=memory)[1:-1]
        return told

    for content in ("I am allergic to nuts.", "Write it to my address.", "Call us at nine.", "我对坚果过敏。"):
        assert "said by user:bo)" in line(content, "user:bo")
        assert "user:bo 说的)" in line(content, "user:bo", "zh")
        for nobody_else in ("user:ann", "agent:scribe", "project:shop", "user:local"):
            assert "said by" not in line(content, nobody_else)
    assert "said by" not in line("Bo is allergic to nuts.", "user:bo")


def test_a_preference_of_another_in_the_first_person_names_them_once() -> None:
    (line,) = lines("I like tea", "semantic", "en", memory={"category": "preference"}, owner="user:bo")[1:-1]
    assert line.count("user:bo") == 1


@pytest.mark.parametrize(
    ("language", "kind", "line"),
    [
        ("zh", "adr", "- 架构决策: 采用微服务架构 (ADR-003, 2026-02-10)"),
        ("zh", "convention", "- 代码约定: 采用微服务架构 (ADR-003, 2026-02-10)"),
        ("zh", "known_issue", "- 已知问题: 采用微服务架构 (ADR-003, 2026-02-10)"),
        ("zh", "project_context", "- 采用微服务架构 (ADR-003, 2026-02-10)"),
        ("en", "adr", "- Architecture decision: 采用微服务架构 (ADR-003, 2026-02-10)"),
        ("en", "convention", "- Convention: 采用微服务架构 (ADR-003, 2026-02-10)"),
        ("en", "known_issue", "- Known issue: 采用微服务架构 (ADR-003, 2026-02-10)"),
    ],
)
def test_what_a_project_shares_is_told_by_its_kind(language: Language, kind: str, line: str) -> None:
    told = lines("采用微服务架构", "shared", language, id="ADR-003", memory={"kind": kind})
    assert told == ["<project_context>", line, "</project_context>"]


def test_a_kind_that_the_words_name_already_is_not_said_twice() -> None:
    (line,) = lines("架构决策: 采用微服务架构", "shared", id="ADR-003", memory={"kind": "adr"})[1:-1]
    assert line == "- 架构决策: 采用微服务架构 (ADR-003, 2026-02-10)"


@pytest.mark.parametrize("layer", ["shared", "semantic", "short"])
def test_a_fact_of_a_project_is_told_with_what_it_is_about(layer: RecallLayer) -> None:
    (line,) = lines("PostgreSQL 16", layer, task="数据库", memory={"kind": "project_context"})[1:-1]
    assert line.startswith("- 数据库: PostgreSQL 16 (")


@pytest.mark.parametrize(
    ("happened_at", "zh", "en"),
    [
        ("2026-02-12T20:00:30+08:00", "今天", "today"),
        ("2026-02-12T12:04:00Z", "今天", "today"),
        ("2026-02-12T18:00:00Z", "不到1天后", "in less than a day"),
        ("2026-02-13T18:00:00Z", "1天后", "in 1 day"),
        ("2026-02-28T09:00:00-05:00", "16天后", "in 16 days"),
    ],
)
def test_what_is_yet_to_happen_is_not_told_as_of_today(happened_at: str, zh: str, en: str) -> None:
    ages: dict[Language, str] = {"zh": zh, "en": en}
    for language, age in ages.items():
        told = lines("Lisbon", "episodic", language, memory={"happened_at": happened_at})
        assert told[1:-1] == [f"- [{age}] Lisbon"]


@pytest.mark.parametrize(
    ("layer", "kind", "line"),
    [
        ("episodic", None, "- [3天前] 登录页面坏了"),
        ("short", "mood", "- [3天前] 登录页面坏了"),
        ("short", "follow_up", "- [3天前] 登录页面坏了"),
        ("shared", "known_issue", "- 已知问题: 登录页面坏了 (m-1, 2026-02-10)"),
        ("plain", None, "- 登录页面坏了 (m-1, 2天前)"),
    ],
)
def test_a_verdict_makes_nothing_younger(layer: RecallLayer, kind: str | None, line: str) -> None:
    """It changes `updated_at`, and neither when something happened nor when it was stated."""
    assert lines("登录页面坏了", layer, memory={"kind": kind})[1:-1] == [line]


def test_an_episode_has_its_age_and_a_procedure_its_steps() -> None:
    fixed = lines("修复了登录页面布局问题 (flex 错位)", "episodic", memory={"happened_at": "2026-02-10T08:00:00Z"})
    assert fixed[1:-1] == ["- [2天前] 修复了登录页面布局问题 (flex 错位)"]
    steps = {"name": "代码审查流程", "steps": ["1. 风格检查", "2. 安全审计", "3. 改进建议"]}
    reviewed = lines("代码审查流程", "procedural", memory=steps)
    assert reviewed[0] == "<relevant_procedures>"
    assert reviewed[1:-1] == ["- 代码审查流程: 风格检查 → 安全审计 → 改进建议"]


@pytest.mark.parametrize(
    "number",
    [
        "1. ",
        "1.",
        "1．",
        "1、",
        "(1) ",
        "（1）",
        "1)",
        "1）",
        "①",
        "一、",
        "（一）",
        "第一步：",
        "第 1 步，",
        "Step 1: ",
    ],
)
def test_a_step_is_told_without_its_number_however_that_is_written(number: str) -> None:
    told = lines("review", "procedural", memory={"name": "review", "steps": [f"{number}检查", "merge"]})
    assert told[1:-1] == ["- review: 检查 → merge"]


@pytest.mark.parametrize("step", ["2.5 秒后重试", "3 次重试", "一次提交", "10:30 开会", "第一步很重要", "1.", "①"])
def test_a_step_that_begins_with_a_number_of_its_own_keeps_it(step: str) -> None:
    told = lines("review", "procedural", memory={"name": "review", "steps": [step, "merge"]})
    assert told[1:-1] == [f"- review: {step} → merge"]


@pytest.mark.parametrize(
    ("said", "version", "stated"),
    [
        ("2026-02-10", 1, "2026-02-10"),
        ("2026-02-10T08:00:00Z", 1, "2026-02-10"),
        ("2026-02-10T08:00:00+08:00", 1, "2026-02-10"),
        ("0001-01-01T00:00:00+14:00", 1, "0001-01-01"),
        ("2026-02-10", 2, "2026-11-29"),
        ("2099-01-01", 1, "2026-11-29"),
        ("last spring", 1, "2026-11-29"),
        ("", 1, "2026-11-29"),
        (None, 1, "2026-11-29"),
    ],
)
def test_what_is_imported_is_as_old_as_its_source_says(said: str | None, version: int, stated: str) -> None:
    item = {"version": version, "source": {"timestamp": said}}
    assert stated_at(item, "2026-11-29T16:00:00.000000Z")[:10] == stated

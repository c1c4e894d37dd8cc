"""What do the commands about knowledge send, print, and exit with?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from producers.cli import session
from producers.cli.main import app
from tests.doors.scripted_node import ScriptedNode
from tests.processes.started import ROOT

SAVED = {"id": "k-1", "position": 7, "version": 1, "event_id": "e-1", "duplicate": False}
CHANGED = {"id": "k-1", "position": 8, "events": [{"type": "x", "event_id": "e-2", "position": 8}]}
ITEM: dict[str, Any] = {
    "id": "knowledge-20260305-a1b2",
    "task": "测试偶尔失败",
    "content": "先单独运行两百次。\nThen look for [bold]shared[/bold] state. \x1b[31m",
    "types": ["plan", "tool"],
    "tags": {"domain": "testing"},
    "scopes": ["public", "team:web"],
    "owner": "team:web",
    "visibility": "public",
    "resource_ids": [],
    "source": {"name": "retro", "trace_id": "t-1", "urls": ["https://example.com/a"]},
    "eval": {"score": 4, "helpful": 3, "harmful": 1, "confidence": 0.5},
    "quality_score": 5.0,
    "relevance": 0.8125,
    "match": 0.912,
    "version": 2,
    "position": 40,
    "created_at": "2026-03-05T12:00:00Z",
    "updated_at": "2026-03-06T12:00:00Z",
}
FOUND = {"results": [ITEM], "count": 1, "position": 41, "recall_id": None}


def kledger(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=stdin)


def commands() -> list[str]:
    def named(group: Any, path: str) -> Iterator[str]:
        for name, command in group.commands.items():
            if hasattr(command, "commands"):
                yield from named(command, f"{path}{name} ")
            else:
                yield f"{path}{name}"

    return list(named(typer.main.get_command(app), ""))


def test_every_command_has_help_with_an_example_that_starts_like_it() -> None:
    assert len(commands()) >= 24
    for command in commands():
        helped = kledger(*command.split(), "--help")
        assert helped.exit_code == 0
        assert f"Example: kledger {command}" in " ".join(helped.stdout.replace("\\\n", "").split()), command


def test_every_example_in_the_code_is_of_a_command_that_there_is() -> None:
    known = commands()
    examples = [
        (file, line.strip().removeprefix("Example: kledger "))
        for file in sorted((ROOT / "producers" / "cli" / "commands").rglob("*.py"))
        for line in file.read_text("utf-8").splitlines()
        if line.strip().startswith("Example: kledger ")
    ]
    assert len(examples) >= len(known)
    for file, words in examples:
        assert any(f"{words} ".startswith(f"{command} ") for command in known), (file, words)


def test_the_help_says_what_exit_codes_mean() -> None:
    assert "3 no node reachable" in " ".join(kledger("--help").stdout.split())


_SMALL = """
import typer
from typer.testing import CliRunner
app = typer.Typer()
@app.command()
def one(): ...
@app.command()
def other(): ...
assert CliRunner().invoke(app, ["--help"]).exit_code == 0
"""


def processor_seconds(*arguments: str) -> float:
    """What a Python process takes of the processor, the least of three."""
    seconds = []
    for _ in range(3):
        before = os.times()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        after = os.times()
        seconds.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return min(seconds)


def test_help_takes_no_more_than_a_few_times_that_of_a_command_of_ten_lines() -> None:
    assert processor_seconds("-m", "producers.cli.main", "--help") < 6 * processor_seconds("-c", _SMALL)


def test_search_shows_rank_id_task_types_relevance_and_verdicts(node: ScriptedNode) -> None:
    node.says("GET /api/knowledge/search", FOUND)
    ran = kledger("search", "偶尔失败", "--top-k", "3", "--types", "plan,tool", "--as-of", "41", "--path", "keyword")
    assert ran.exit_code == 0
    for part in ("1", ITEM["id"], "测试偶尔失败", "plan, tool", "0.91", "4", "+2 -1", "as of position 41"):
        assert part in ran.stdout
    asked = node.asked[0].query
    assert (asked["q"], asked["top_k"], asked["types"]) == ("偶尔失败", "3", "plan,tool")
    assert (asked["as_of"], asked["paths"], asked["record"]) == ("41", "keyword", "true")


def test_what_somebody_saved_is_shown_and_never_obeyed_by_the_terminal(node: ScriptedNode) -> None:
    node.says("GET /api/knowledge/k-1", {**ITEM, "status": "active"})
    ran = kledger("show", "k-1")
    assert "[bold]shared[/bold]" in ran.stdout
    assert "\x1b" not in ran.stdout


def test_json_is_one_document_and_nothing_else_on_stdout(node: ScriptedNode) -> None:
    node.says("GET /api/knowledge/search", FOUND)
    ran = kledger("search", "q", "--json")
    assert json.loads(ran.stdout) == FOUND


def test_a_search_without_a_result_says_so(node: ScriptedNode) -> None:
    node.says("GET /api/knowledge/search", {"results": [], "count": 0, "position": 3, "recall_id": None})
    ran = kledger("search", "q")
    assert (ran.exit_code, ran.stdout.strip()) == (0, "nothing found; 0 items, as of position 3")


def test_an_answer_without_items_says_which_word_of_a_filter_nothing_has(node: ScriptedNode) -> None:
    said = "no item that you see has the type 'stratgy': is 'strategy' meant?"
    told = {"unmatched": [{"field": "types", "value": "stratgy", "message": said}], "position": 7}
    node.says("GET /api/knowledge/search", {"results": [], "count": 0, "recall_id": None, **told})
    node.says("GET /api/knowledge", {"results": [], "count": 0, "total": 0, "next": None, **told})
    nothing: dict[str, list[Any]] = {name: [] for name in ("types", "tags", "scopes", "owners", "layers", "statuses")}
    node.says("GET /api/overview/facets", {**nothing, "total": 0, **told})
    for command in (["search", "deploy"], ["list"], ["facets"]):
        ran = kledger(*command, "--types", "stratgy")
        assert ran.exit_code == 0
        assert said in " ".join(ran.stdout.split())


def test_who_asks_comes_from_options_or_the_environment(node: ScriptedNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KLEDGER_USER", "mei")
    node.says("GET /api/knowledge/search", FOUND)
    kledger("search", "q")
    kledger("search", "q", "--user", "jonas")
    first, second = (asked.headers for asked in node.asked)
    assert first["x-ledger-user"] == "mei"
    assert second["x-ledger-user"] == "jonas"
    assert "x-ledger-team" not in first


def test_the_operators_commands_never_say_who_asks(node: ScriptedNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KLEDGER_USER", "mei")
    node.says("GET /api/admin/attach", {"statement": "ATTACH 'x'"})
    assert kledger("sql").exit_code == 0
    assert "x-ledger-user" not in node.asked[0].headers


def test_save_states_the_item_and_where_it_is_from(node: ScriptedNode) -> None:
    node.says("POST /api/knowledge", SAVED, 201)
    ran = kledger(
        *("save", "--task", "T", "--content", "C", "--types", "tool,plan", "--type", "tip", "--id", "k-1"),
        *("--tag", "lang=en", "--tag", "note=a=b", "--scope", "public", "--owner", "team:web", "--score", "5"),
        *("--source-name", "retro", "--source-url", "https://example.com", "--trace", "t-1", "--message", "m-1"),
    )
    assert (ran.exit_code, ran.stdout.strip()) == (0, "saved k-1 at position 7")
    assert node.asked[0].body == {
        "id": "k-1",
        "task": "T",
        "content": "C",
        "types": ["tool", "plan", "tip"],
        "tags": {"lang": "en", "note": "a=b"},
        "scopes": ["public"],
        "owner": "team:web",
        "source": {"name": "retro", "urls": ["https://example.com"], "trace_id": "t-1", "message_id": "m-1"},
        "score": 5,
    }
    assert node.asked[0].headers["x-ledger-trace-id"] == "t-1"


def test_rate_states_the_case_and_a_score_in_two_facts(node: ScriptedNode) -> None:
    node.says("PUT /api/knowledge/k-1", CHANGED)
    ran = kledger("rate", "k-1", "--harmful", "--reason", "wrong", "--trace", "t-1", "--score", "1", "--json")
    assert [asked.body for asked in node.told] == [
        {"add_harmful_case": {"reason": "wrong", "trace_id": "t-1"}},
        {"update_score": 1},
    ]
    assert len(json.loads(ran.stdout)["events"]) == 2


def test_revise_retire_and_restore_say_where_they_are_kept(node: ScriptedNode) -> None:
    node.says("PUT /api/knowledge/k-1", CHANGED)
    node.says("DELETE /api/knowledge/k-1", SAVED)
    node.says("POST /api/knowledge/k-1/restore", SAVED)
    revised = kledger("revise", "k-1", "--content", "C2", "--expected-version", "3", "--reason", "newer")
    assert revised.stdout.strip() == "revised k-1 at position 8"
    assert kledger("retire", "k-1", "--reason", "gone").stdout.strip() == "retired k-1 at position 7"
    assert kledger("restore", "k-1", "--expected-version", "4").stdout.strip() == "restored k-1 at position 7"
    assert node.told[0].body == {"content": "C2", "expected_version": 3, "reason": "newer"}
    assert node.told[1].query == {"reason": "gone"}
    assert node.told[2].query == {"expected_version": "4"}


def test_a_tag_is_a_name_with_a_value_or_a_word(node: ScriptedNode) -> None:
    node.says("PUT /api/knowledge/k-1", CHANGED)
    revised = kledger("revise", "k-1", "--tag", "urgent", "--tag", "area=a=b", "--tag", "紧急=")
    assert revised.exit_code == 0, revised.stderr
    assert node.told[0].body == {"tags": {"urgent": "", "area": "a=b", "紧急": ""}}
    for wrong in ("=release", "", " "):
        refused = kledger("revise", "k-1", "--tag", wrong)
        assert (refused.exit_code, "is not name=value" in refused.stderr) == (2, True), wrong
    meta = kledger("resource", "save", "r", "--title", "t", "--meta", "word")
    assert (meta.exit_code, "Invalid value for --meta" in meta.stderr) == (2, True)
    assert len(node.told) == 1


def test_show_counts_the_cases_of_the_histories(node: ScriptedNode) -> None:
    told = {**ITEM["eval"], "helpful_history": [{}, {}], "harmful_history": [{}]}
    node.says("GET /api/knowledge/k-1", {**ITEM, "eval": told, "status": "retired"})
    said = " ".join(kledger("show", "k-1").stdout.split())
    for part in ("helped 2 times, with 2 cases", "harmed 1 time, with 1 case", "status retired", "domain=testing"):
        assert part in said


def test_list_and_history_show_each_row(node: ScriptedNode) -> None:
    versions = [
        {
            "version": 1,
            "change": "saved",
            "valid_from": 2,
            "valid_from_time": "2026-03-05T12:00:00Z",
            "actor": "user:mei",
            "content": "old",
        }
    ]
    feedback = [
        {
            "position": 5,
            "time": "2026-03-05T12:00:00Z",
            "verdict": "helpful",
            "actor": "agent:scribe",
            "outcome": "done",
            "task": None,
        }
    ]
    node.says("GET /api/knowledge", {"results": [ITEM], "count": 1, "total": 7, "next": 2, "position": 9})
    node.says(
        "GET /api/knowledge/k-1/history",
        {"id": "k-1", "versions": versions, "feedback": feedback, "position": 9},
    )

    assert ITEM["id"] in kledger("list", "--status", "all", "--owner", "team:web").stdout
    told = kledger("history", "k-1").stdout
    for part in ("old", "saved", "user:mei", "outcome done", "agent:scribe"):
        assert part in told


def test_profiles_are_shown_set_and_patched_for_the_user(node: ScriptedNode, tmp_path: Path) -> None:
    node.says("GET /api/v1/memories", {"user_memory": {"timezone": "亚洲/上海"}, "work_memory": None})
    node.says("PUT /api/v1/memories/work", {"expertise": ["sql"]})
    node.says("PATCH /api/v1/memories/user", {"timezone": "UTC"})
    file = tmp_path / "work.json"
    file.write_text('{"expertise": ["sql"]}', encoding="utf-8")

    shown = kledger("profile", "show", "--user", "mei").stdout
    assert "亚洲/上海" in shown
    assert "kledger profile register" in shown
    assert '"sql"' in kledger("profile", "set", "work", f"@{file}", "--user", "mei").stdout
    assert kledger("profile", "patch", "user", "-", "--user", "mei", stdin='{"timezone": "UTC"}').exit_code == 0
    assert [asked.body for asked in node.told] == [
        {"content": {"expertise": ["sql"]}},
        {"content": {"timezone": "UTC"}},
    ]
    assert {asked.headers["x-ledger-user"] for asked in node.asked} == {"mei"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["search"],
        ["search", "q", "--top-k", "0"],
        ["search", "q", "--path", "magic"],
        ["search", "q", "--no-such-option"],
        ["save", "--task", "T", "--content", "C"],
        ["save", "--task", "T", "--content", "C", "--types", "tool", "--tag", "=noname"],
        ["rate", "k-1"],
        ["rate", "k-1", "--helpful", "--harmful"],
        ["rate", "k-1", "--score", "9"],
        ["revise", "k-1", "--reason", "nothing"],
        ["import"],
        ["import", "no-such-file.jsonl"],
        ["profile", "show"],
        ["profile", "patch", "user", "[1]", "--user", "mei"],
        ["profile", "patch", "user", "{", "--user", "mei"],
        ["profile", "patch", "user", "@no-such-file", "--user", "mei"],
        ["replay", "--to", "3"],
        ["up", "--quack", "somewhere", "--http", "127.0.0.1:0"],
        ["frobnicate"],
    ],
)
def test_wrong_use_exits_with_two_and_asks_the_node_nothing(node: ScriptedNode, arguments: list[str]) -> None:
    ran = kledger(*arguments)
    assert ran.exit_code == 2, ran.output
    assert ran.stdout == ""
    assert node.asked == []


def test_an_error_of_the_node_exits_with_one_and_says_code_and_message(node: ScriptedNode) -> None:
    node.refuses("GET /api/knowledge/k-1", "unknown_knowledge", 404, "no item k-1: check the id", id="k-1")
    ran = kledger("show", "k-1")
    assert (ran.exit_code, ran.stdout) == (1, "")
    assert ran.stderr.strip() == "error: no item k-1: check the id (unknown_knowledge)"
    ran = kledger("show", "k-1", "--json")
    assert ran.exit_code == 1
    assert json.loads(ran.stdout)["error"] == {
        "code": "unknown_knowledge",
        "message": "no item k-1: check the id",
        "details": {"id": "k-1"},
    }


def test_an_id_that_cannot_be_a_scope_is_an_error_and_not_a_crash(node: ScriptedNode) -> None:
    ran = kledger("search", "q", "--user", "two\nlines")
    assert (ran.exit_code, node.asked) == (1, [])
    assert "illegal_scope" in ran.stderr


def test_without_a_node_every_command_exits_with_three_and_says_what_to_do() -> None:
    ran = kledger("search", "q", "--url", "http://127.0.0.1:9")
    assert (ran.exit_code, ran.stdout) == (3, "")
    assert "check the address, in KLEDGER_URL or --url, or start one with: kledger up --http 127.0.0.1:9" in ran.stderr


def test_a_command_that_wrote_ends_when_every_view_has_it(node: ScriptedNode) -> None:
    def views(vectors: int) -> dict[str, Any]:
        return {"views": [{"name": "duckdb", "position": 7}, {"name": "vectors", "position": vectors}]}

    node.says("POST /api/knowledge", SAVED, 201)
    for position in (5, 6, 7):
        node.says("GET /api/admin/status", views(position))
    ran = kledger("save", "--task", "T", "--content", "C", "--types", "tool", "--user", "mei")
    looks = [asked for asked in node.asked if asked.line == "GET /api/admin/status"]
    assert (ran.exit_code, len(looks)) == (0, 3)
    assert "x-ledger-user" not in looks[0].headers


def test_a_write_that_the_views_do_not_have_yet_is_kept_all_the_same(
    node: ScriptedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "SETTLED_WITHIN", 0.05)
    node.says("POST /api/knowledge", SAVED, 201)
    node.says("GET /api/admin/status", {"views": [{"name": "duckdb", "position": 1}]})
    ran = kledger("save", "--task", "T", "--content", "C", "--types", "tool")
    assert (ran.exit_code, ran.stdout.strip()) == (0, "saved k-1 at position 7")

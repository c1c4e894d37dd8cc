"""Do the commands fit a screen: hits on few lines, examples that can be pasted, advice in the command's own options?"""

from __future__ import annotations

import ast
import inspect
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from rich.cells import cell_len
from typer.testing import CliRunner, Result

from ledger.runtime.redaction import TOKEN
from producers.cli.advice import advised
from producers.cli.encoding import plain
from producers.cli.main import app
from producers.cli.usage.examples import HEAD
from tests.doors.scripted_node import ScriptedNode
from tests.doors.test_cli_knowledge import ITEM
from tests.house.project import modules


def kledger(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


LONG = {**ITEM, "task": "测试偶尔失败怎么办 " * 6, "content": "Run it two hundred times. " * 40}


@pytest.mark.parametrize("columns", [60, 80, 99])
def test_on_a_narrow_screen_a_hit_takes_two_lines_and_an_item_of_a_list_one(
    node: ScriptedNode, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    hits = [{**LONG, "quality_score": 5.0, "relevance": 0.8} for _ in range(5)]
    node.says("GET /api/knowledge/search", {"results": hits, "count": 5, "position": 9, "recall_id": None})
    node.says("GET /api/knowledge", {"results": [LONG] * 5, "count": 5, "total": 5, "next": None, "position": 9})
    for command, lines in ((("search", "q"), 14 + 2), (("list",), 5 + 2)):
        shown = kledger(*command).stdout.rstrip("\n").splitlines()
        assert len(shown) <= lines, shown
        assert all(cell_len(line) <= columns for line in shown)
        assert sum(ITEM["id"] in line for line in shown) == 5


def test_a_moment_stands_on_one_line_of_a_screen_of_80_columns(
    node: ScriptedNode, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    moment, actor = "2026-03-05T12:00:00.123456Z", "agent:the-one-that-deploys"
    version = {"version": 1, "valid_from": 5, "valid_from_time": moment, "change": "saved", "actor": actor}
    case = {"position": 6, "time": moment, "verdict": "helpful", "actor": actor, "outcome": "no user noticed it " * 9}
    told = {"id": "k", "versions": [{**version, "content": "word " * 90}], "feedback": [case], "position": 9}
    node.says("GET /api/knowledge/k/history", told)
    refused = {"position": 5, "time": moment, "type": "knowledge.saved", "subject": "", "code": "invalid_payload"}
    refused |= {"state": "parked", "reason": "it says nothing of that kind " * 9}
    node.says("GET /api/admin/refused", {"refused": [refused], "position": 9})
    rows = {"columns": ["id", "at", "said"], "types": ["string", "timestamp[us, tz=UTC]", "string"], "truncated": False}
    node.says("POST /api/admin/sql", {**rows, "rows": [["an-id " * 9, moment, "word " * 90]], "position": 9})
    data = str(tmp_path)
    created = kledger("token", "create", "--new", "--agent", "scribe", "--name", "what it is for " * 5, "--data", data)
    assert created.exit_code == 0
    for words in (["history", "k"], ["refused", "list"], ["sql", "SELECT 1"], ["token", "list", "--data", data]):
        shown = kledger(*words).stdout
        assert all(cell_len(line) <= 80 for line in shown.splitlines()), shown
        assert re.search(r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", shown), shown


def test_where_a_table_would_break_its_words_each_row_is_a_list(
    node: ScriptedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    recall: dict[str, Any] = {
        "recall_id": f"recall-{'6' * 32}",
        "time": "2026-03-05T12:00:00.123456Z",
        "kind": "search",
    }
    recall |= {"actor": "agent:deployer", "query": "how do we call a branch", "of": 5}
    node.says("GET /api/recalls", {"results": [recall, recall], "count": 2, "total": 2, "next": None, "position": 9})
    session: dict[str, Any] = {"id": "sess-1", "owner": "agent:deployer", "status": "open", "messages": 6}
    session |= {"opened_at": recall["time"], "last_at": recall["time"], "session_id": "sess-1"}
    node.says("GET /api/sessions", {"results": [session], "count": 1, "total": 1, "next": None, "position": 9})
    for columns, a_list in ((80, True), (200, False)):
        monkeypatch.setenv("COLUMNS", str(columns))
        for words in (["recalls"], ["session", "list"]):
            shown = kledger(*words).stdout
            assert "agent:deployer" in shown, shown
            assert ("\n\n" in shown) is a_list, shown
            assert all(cell_len(line.rstrip()) <= columns for line in shown.splitlines())
        shown = kledger("recalls").stdout
        assert shown.count(recall["recall_id"]) == shown.count("how do we call a branch") == 2


def test_what_is_to_be_copied_is_one_line_on_any_screen(
    node: ScriptedNode, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    created = kledger("token", "create", "--new", "--agent", "scribe", "--data", str(tmp_path))
    assert TOKEN.fullmatch(created.stdout.splitlines()[0])
    statement = "ATTACH 'quack:127.0.0.1:9494' AS kl (TOKEN '3WXgBOdkSDf8w5RpM6EWbsBXaxef0a_r');"
    node.says(
        "GET /api/admin/attach",
        {"prepare": "LOAD quack;", "statement": statement, "example": "FROM kl.query($$ x $$);"},
    )
    assert statement in kledger("sql").stdout.splitlines()
    made = kledger("nats-config", str(tmp_path / "broker"), "--publisher", "agent:scribe").stdout
    assert f"  nats-server -c {tmp_path}/broker/nats-server.conf" in made.splitlines()


def test_full_shows_the_content_whole_on_any_screen(node: ScriptedNode, monkeypatch: pytest.MonkeyPatch) -> None:
    hit = {**LONG, "quality_score": 5.0, "relevance": 0.8}
    node.says("GET /api/knowledge/search", {"results": [hit], "count": 1, "position": 9, "recall_id": None})
    for columns in (80, 160):
        monkeypatch.setenv("COLUMNS", str(columns))
        assert kledger("search", "q").stdout.count("two hundred") < 20
        assert " ".join(kledger("search", "q", "--full").stdout.split()).count("two hundred") == 40


TEXT = "第一步，" * 60 + "\n    " + "run it two hundred times, " * 40 + "\n\nend"


RECALLED = {"text": TEXT, "nothing_known": False, "intent": "new_task", "count": 1} | {
    "results": [{"match": 1.0, "layer": "plain", "id": "k-1", "content": "C"}]
}


@pytest.mark.parametrize(
    ("command", "asked", "answer"),
    [
        ("startup", "GET /api/recall/startup", {"prompt": TEXT}),
        ("focus g-1 why", "POST /api/goals/g-1/focus", {"title": "t", "output": TEXT, "position": 3}),
        ("prompt research", "GET /api/prompts/research", {"text": TEXT}),
        ("profile prompt user --user ann", "GET /api/v1/memories/user/prompt", {"prompt": TEXT}),
        ("show k-1", "GET /api/knowledge/k-1", {**ITEM, "content": TEXT}),
        ("recall why", "POST /api/memory/recall", RECALLED),
    ],
)
def test_in_a_pipe_a_text_has_the_lines_that_it_was_written_in(
    node: ScriptedNode, monkeypatch: pytest.MonkeyPatch, command: str, asked: str, answer: dict[str, Any]
) -> None:
    """A prompt goes on to a model and a script into a file: a line that was broken to fit a screen is another text."""
    monkeypatch.setenv("COLUMNS", "80")
    node.says(asked, answer)
    ran = kledger(*command.split())
    assert ran.exit_code == 0, ran.output
    assert TEXT in ran.stdout


def test_what_a_recall_prints_on_stdout_goes_into_a_prompt_as_it_is(node: ScriptedNode) -> None:
    node.says("POST /api/memory/recall", RECALLED)
    ran = kledger("recall", "why")
    assert ran.stdout == f"{TEXT}\n"
    assert "k-1" in ran.stderr
    assert "intent new_task, 1 result" in ran.stderr


@pytest.mark.parametrize(
    ("shown", "said"), [(0, "1 result; none in the text: more is above --budget-tokens 5"), (1, "1 result")]
)
def test_a_text_that_a_budget_cut_says_how_much_of_what_was_found_is_in_it(
    node: ScriptedNode, shown: int, said: str
) -> None:
    node.says("POST /api/memory/recall", {**RECALLED, "shown": shown})
    ran = kledger("recall", "why", "--budget-tokens", "5")
    assert " ".join(ran.stderr.split()).endswith(said)


def test_a_hint_about_what_was_kept_is_told_beside_the_answer(node: ScriptedNode) -> None:
    kept = {"id": "m-1", "position": 3, "version": 1, "event_id": "e", "duplicate": False, "warnings": []}
    hints = ["the kind 'conventoin' is kept as a word of its own: 'convention' may be meant"]
    node.says("POST /api/memory", kept | {"status": "active", "layer": "semantic", "ignored": [], "hints": hints})
    ran = kledger("memory", "save", "tabs", "--kind", "conventoin")
    assert ran.exit_code == 0, ran.output
    assert ran.stderr == f"hint: {hints[0]}\n"


def test_an_example_is_shown_on_lines_that_can_be_pasted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every command; on a screen of 80 columns no line of an example is broken."""
    monkeypatch.setenv("COLUMNS", "80")
    seen = 0
    for path, command in every_command(typer.main.get_command(app), []):
        source = inspect.cleandoc(command.help or "").partition(f"{HEAD}\n")[2]
        assert source, path
        shown = CliRunner().invoke(app, [*path, "--help"]).stdout
        lines = [line.strip() for line in source.splitlines()]
        assert [line.strip() for line in shown.splitlines() if line.strip() in lines] == lines, (path, shown)
        assert all(line.endswith("\\") for line in lines[:-1])
        words = shlex.split(source.replace("\\\n", " "))
        assert words[0] == "kledger" or "kledger" in words, path
        seen += 1
    assert seen > 60


def every_command(command: Any, path: list[str]) -> Iterator[tuple[list[str], Any]]:
    for name, inner in getattr(command, "commands", {}).items():
        yield from every_command(inner, [*path, name])
    if not hasattr(command, "commands"):
        yield path, command


@pytest.mark.parametrize(
    ("message", "advice"),
    [
        ("ask as user:jonas, in the X-Ledger headers", "ask with --user jonas"),
        ("ask as team:web & co, in the X-Ledger headers", "ask with --team 'web & co'"),
        ("ask as department:hr, in the X-Ledger headers", "ask with --entity department:hr"),
        ("x-ledger-trace-id has to be 1 to 512 characters", "--trace has to be 1 to 512 characters"),
    ],
)
def test_advice_names_the_options_of_the_command(node: ScriptedNode, message: str, advice: str) -> None:
    node.refuses("DELETE /api/knowledge/k", "not_owner", 403, f"you may not: {message}")
    ran = kledger("retire", "k")
    assert f"error: you may not: {advice} (not_owner)" in ran.stderr
    assert f"you may not: {advice}" in kledger("retire", "k", "--json").stdout


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("no node answers; check the address", "no node answers; check the address, in KLEDGER_URL or --url"),
        ("check the address and the certificate", "check the address, in KLEDGER_URL or --url and the certificate"),
        ("no Qdrant server answers: check the address of --qdrant", None),
        ("bge gave no vectors: check the address, the key and the model", None),
    ],
)
def test_the_address_of_what_a_node_asks_is_not_told_as_that_of_the_node(said: str, told: str | None) -> None:
    assert advised(said) == (told or said)


def test_what_is_refused_among_many_is_told_in_the_options_of_the_command(node: ScriptedNode, tmp_path: Path) -> None:
    message = "you are user:ann and may not save that: ask as user:bob, in the X-Ledger headers"
    error = {"code": "not_owner", "message": message, "details": {}}
    refused = {"index": 0, "id": None, "outcome": "refused", "position": None, "error": error}
    node.says(
        "POST /api/knowledge/batch", {"results": [refused], "saved": 0, "unchanged": 0, "refused": 1, "position": 1}
    )
    (tmp_path / "global").mkdir()
    payload = '{"task": "t", "content": "c", "types": ["tool"]}'
    (tmp_path / "global" / "tool.json").write_text(f"[{payload}]")
    (tmp_path / "items.jsonl").write_text(payload)
    for words in (["import-tree", str(tmp_path)], ["import", str(tmp_path / "items.jsonl")]):
        for more in ([], ["--json"]):
            ran = kledger(*words, *more)
            said = " ".join(ran.stdout.split())
            assert (ran.exit_code, "ask with --user bob" in said, "X-Ledger" in said) == (1, True, False), ran.output


def test_the_fields_of_an_error_are_named_as_options_for_a_machine_too(node: ScriptedNode) -> None:
    wrong = {"field": "x-ledger-trace-id", "reason": "is too long"}
    node.refuses("DELETE /api/knowledge/k", "invalid_payload", 422, "x-ledger-trace-id is too long", errors=[wrong])
    told = json.loads(kledger("retire", "k", "--json").stdout)["error"]
    assert told["details"]["errors"] == [{"field": "--trace", "reason": "is too long"}]


UNREACHABLE = (
    "several",  # headers of one name
    "is there twice",
    "percent-encoded",
    "is not known",
    "names nobody here",  # a header of other servers
    "Idempotency-Key",
    "Content-Type",
    "the only header that counts",
)
"""What is wrong with a request that no command sends, and with an event in a proof."""


def test_no_message_of_the_product_speaks_of_headers_to_who_uses_the_command() -> None:
    """Every text in the code that an error may say, but for what is wrong with a request that no command sends."""
    spoken = re.compile(r"[Xx]-[Ll]edger|[Hh]eaders?\b|Authorization|\b(GET|POST|PUT|PATCH|DELETE)\b")
    speaking = [text for text in texts_of_errors() if spoken.search(text)]
    reachable = [text for text in speaking if not any(words in text for words in UNREACHABLE)]
    assert len(reachable) >= 8
    assert [text for text in reachable if spoken.search(advised(text))] == []


def texts_of_errors() -> Iterator[str]:
    """What is raised anywhere; of operations and access also what a function returns or keeps to be raised."""
    for module in modules(("kledger", "ledger", "producers")):
        raised_alone = not {"operations", "access"} & set(module.parts)  # elsewhere other texts speak of headers too
        kinds = (ast.Raise,) if raised_alone else (ast.Raise, ast.Return, ast.Assign)
        for node in ast.walk(ast.parse(module.read_text("utf-8"))):
            if isinstance(node, kinds):
                yield from texts_in(node)


def texts_in(statement: ast.AST) -> Iterator[str]:
    """The texts of a statement as they are said, each value in them as an identity."""
    parts = [part for node in ast.walk(statement) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)]
    for node in ast.walk(statement):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "user:ann" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value and node not in parts:
            yield node.value


def test_what_a_bulk_says_of_an_item_names_the_options_of_the_command(node: ScriptedNode) -> None:
    error = {"code": "unknown_knowledge", "message": "no item k: check the id and as whom you ask"}
    answer = {"done": 0, "unchanged": 0, "refused": 1, "bulk_id": None, "position": 9}
    node.says("POST /api/knowledge/bulk", {**answer, "results": [{"id": "k", "state": "refused", "error": error}]})
    shown = " ".join(kledger("bulk", "retire", "k").stdout.split())
    assert "k: no item k: check the id and for whom you ask (--user, --agent" in shown
    assert "headers" not in shown


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_an_id_of_a_query_stands_on_one_line_of_any_screen(
    node: ScriptedNode, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    row = ["knowledge-20260305-a1b2c3d4e5f6", "event-0d9c7a52-11f0-4d2b-9f0e-7f6a", "word " * 30]
    table = {"columns": ["id", "event_id", "task"], "types": ["VARCHAR"] * 3, "rows": [row], "truncated": False}
    node.says("POST /api/admin/sql", {**table, "position": 9})
    shown = kledger("sql", "SELECT 1").stdout
    assert row[0] in shown
    assert row[1] in shown


def test_a_query_shows_long_fractions_short_and_lists_as_json_and_a_file_has_them_whole(
    node: ScriptedNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    values = [2 / 3, 0.25, 1e-9 / 3, 3.0, 52.520008, True, None, ["a", "b"], {"mood": "可以"}]
    table = {"columns": [f"c{number}" for number in range(len(values))], "types": ["DOUBLE"] * 5 + ["JSON"] * 4}
    node.says("POST /api/admin/sql", {**table, "rows": [values], "truncated": False, "position": 9})
    shown = kledger("sql", "SELECT 1").stdout.split()
    for said in ("0.667", "0.25", "3.33e-10", "3.0", "52.520008", "true", "NULL", '["a",', '"b"]', '{"mood":'):
        assert said in shown, (said, shown)
    for form in ("csv", "json"):
        assert str(2 / 3) in kledger("sql", "SELECT 1", "--format", form).stdout


def test_a_call_of_a_tool_is_shown_as_a_call_and_nothing_in_the_form_of_python(node: ScriptedNode) -> None:
    calls = [
        {"id": "c-1", "name": "read_log", "arguments": {"of": "api"}},
        {"id": "c-2", "type": "function", "function": {"name": "deploy", "arguments": '{"to": "prod"}'}},
        {"id": "c-3", "what": None},
    ]
    message = {"id": "m-1", "role": "assistant", "content": "I look.", "tool_calls": calls}
    page = {"messages": [message], "count": 1, "total": 1, "next": None}
    node.says("GET /api/sessions/s/messages", page)
    shown = kledger("session", "messages", "s").stdout
    assert 'calls read_log({"of": "api"})' in shown
    assert 'calls deploy({"to": "prod"})' in shown
    assert 'calls {"id": "c-3", "what": null}' in shown
    assert "{'" not in shown


def test_whatever_is_shown_of_a_list_or_an_object_is_json() -> None:
    """The sibling of a defect: what a command hands to the screen as it came from the node."""
    assert plain(["a", {"b": None}]) == '["a", {"b": null}]'
    assert plain({"of": "\x1b[31m"}) == '{"of": "\\u001b[31m"}'

"""A terminal that has ASCII alone: every command answers, shows what is not ASCII as escapes, and never fails of it."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from producers.cli import encoding
from producers.cli.main import app, main
from tests.doors.scripted_node import ScriptedNode, commanded_node, refusing_in, scripted_node
from tests.doors.test_cli_knowledge import ITEM
from tests.doors.test_cli_paths import COMMANDS, line

SAID = "é测试😀"
SHOWN = r"\xe9\u6d4b\u8bd5\U0001f600"
Run = Callable[..., tuple[Any, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """`kledger` as a process runs it, on a terminal of ASCII: its exit code, stdout and stderr."""

    def ran(*words: str) -> tuple[Any, str, str]:
        out, err = io.BytesIO(), io.BytesIO()
        with monkeypatch.context() as terminal:
            terminal.setattr(sys, "argv", ["kledger", *words])
            terminal.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
            terminal.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="ascii"))
            terminal.setattr(sys, "stderr", io.TextIOWrapper(err, encoding="ascii"))
            with pytest.raises(SystemExit) as ended:
                main()
            sys.stdout.flush()
            sys.stderr.flush()
            return ended.value.code, out.getvalue().decode("ascii"), err.getvalue().decode("ascii")

    return ran


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedNode]:
    with scripted_node(refusing_in(SAID)) as node:
        monkeypatch.setenv("KLEDGER_URL", node.url)
        yield node


@pytest.mark.usefixtures("refusing")
def test_what_is_refused_is_told_in_escapes_by_every_command_and_as_json_whole(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("1", "FILE"):
        (tmp_path / name).write_text("{}")
    told = 0
    for name, command in COMMANDS.items():
        options = {option for parameter in command.params for option in parameter.opts}
        if "--url" not in options or name == "mcp":
            continue
        code, out, err = run(*line(name, {}), *(["--user", "ann"] if "--user" in options else []), "--json")
        assert code in (0, 1, 2), (name, err)
        if code == 1 and SHOWN in err:
            assert json.loads(out)["error"]["message"] == SAID, name
            told += 1
    assert told > 30


@pytest.mark.usefixtures("refusing")
def test_help_and_usage_errors_are_shown(run: Run) -> None:
    for name in COMMANDS:
        assert run(*name.split(), "--help")[0] == 0
        assert SHOWN in run(*name.split(), f"--{SAID}")[2], name


def test_answers_are_shown_in_escapes_and_as_json_whole(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    item = {**ITEM, "task": SAID, "content": SAID}
    rows: dict[str, Any] = {"columns": [SAID], "types": ["string"], "rows": [[SAID]], "truncated": False, "position": 1}
    with commanded_node(monkeypatch) as node:
        node.says(f"GET /api/knowledge/{ITEM['id']}", item)
        node.says("GET /api/knowledge", {"results": [item], "count": 1, "total": 1, "next": None, "position": 9})
        node.says("POST /api/admin/sql", rows)
        for words, document in (
            (["show", ITEM["id"]], item),
            (["list"], {"results": [item]}),
            (["sql", "FROM x"], rows),
        ):
            code, out, err = run(*words)
            assert (code, SHOWN in out.replace("\n", ""), err) == (0, True, "")
            code, out, err = run(*words, "--json")
            assert code == 0
            told = json.loads(out)
            assert {name: told[name] for name in document if name != "eval"} == {
                name: value for name, value in document.items() if name != "eval"
            }
        assert SAID in CliRunner().invoke(app, ["list"]).stdout


@pytest.mark.parametrize(
    "words",
    [
        ["list", "--user"],
        ["search"],
        ["show"],
        ["save", "--types", "tool", "--content"],
        ["token", "create", "--new", "--data", ".", "--user"],
        ["token", "create", "--new", "--data", ".", "--user", "x", "--name"],
        ["nats-config", "broker", "--publisher"],
    ],
    ids=" ".join,
)
def test_bytes_that_are_no_text_are_refused_in_one_sentence_and_nothing_is_left(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with commanded_node(monkeypatch) as node:
        said = "agent:a\udcff" if "--publisher" in words else "a\udcff"
        code, out, err = run(*words, said)
        assert (code, out) == (1, "")
        assert err.startswith("error: ")
        assert err.count("\n") == 1
        assert node.asked == []
    assert list(tmp_path.iterdir()) == []


def test_a_stream_that_is_no_terminal_of_ours_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = io.StringIO()
    monkeypatch.setattr(sys, "stdout", kept)
    encoding.degrade()
    assert sys.stdout is kept

"""Texts that steer a terminal or show a line in another order: no command prints one as it is, whatever brought it."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from producers.cli.encoding import plain, plain_json
from producers.cli.main import app
from producers.cli.screen import stdout
from tests.doors.scripted_node import ScriptedNode, commanded_node, refusing_in, scripted_node
from tests.doors.test_cli_knowledge import ITEM
from tests.doors.test_cli_paths import COMMANDS, line

STEERING = "".join(
    chr(code)
    for code in range(0x3000)
    if unicodedata.category(chr(code)) in ("Cc", "Zl", "Zp")
    or unicodedata.bidirectional(chr(code)) in ("LRE", "RLE", "PDF", "LRO", "RLO", "LRI", "RLI", "FSI", "PDI")
    or chr(code) in "\u061c\u200e\u200f"
)
SAID = f"a{STEERING.replace(chr(9), '').replace(chr(10), '').replace(chr(0), '')}z"


def harmless(text: str) -> bool:
    return not set(text) & (set(STEERING) - set("\t\n"))


def kledger(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments])


def test_every_character_that_steers_is_an_escape() -> None:
    assert harmless(plain(STEERING))
    assert plain("a\tb\nc é测试😀👩\u200d🔬") == "a\tb\nc é测试😀👩\u200d🔬"
    assert plain("\x1b[2J\u202e") == "\\x1b[2J\\u202e"
    document = json.dumps({SAID: SAID}, ensure_ascii=False)
    assert harmless(plain_json(document))
    assert json.loads(plain_json(document)) == {SAID: SAID}


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedNode]:
    with scripted_node(refusing_in(SAID)) as node:
        monkeypatch.setenv("KLEDGER_URL", node.url)
        yield node


@pytest.mark.usefixtures("refusing")
def test_a_refusal_steers_no_terminal_whichever_command_it_meets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("1", "FILE"):
        (tmp_path / name).write_text("{}")
    told = 0
    for name, command in COMMANDS.items():
        options = {option for parameter in command.params for option in parameter.opts}
        if "--url" not in options or name == "mcp":
            continue
        ran = kledger(*line(name, {}), *(["--user", "ann"] if "--user" in options else []), "--json")
        assert harmless(ran.output), (name, ran.output)
        if ran.exit_code == 1 and "\\u202e" in ran.stderr:
            assert json.loads(ran.stdout)["error"]["message"] == SAID, name
            told += 1
    assert told > 30


def test_an_answer_steers_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    item = {**ITEM, "task": SAID, "content": SAID, "tags": {SAID: SAID}, "owner": SAID}
    rows: dict[str, Any] = {"columns": [SAID], "types": ["string"], "rows": [[SAID]], "truncated": False, "position": 1}
    with commanded_node(monkeypatch) as node:
        node.says(f"GET /api/knowledge/{ITEM['id']}", item)
        node.says("GET /api/knowledge", {"results": [item], "count": 1, "total": 1, "next": None, "position": 9})
        node.says("POST /api/admin/sql", rows)
        for words in (["show", ITEM["id"]], ["list"], ["sql", "FROM x"]):
            for form in ([], ["--json"]):
                ran = kledger(*words, *form)
                assert ran.exit_code == 0
                assert harmless(ran.output), ran.output
                assert "\\u202e" in ran.output.replace("\n", "")


def test_a_text_that_went_past_the_words_of_the_screen_is_shown_as_an_escape(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stdout().print(SAID)
    assert harmless(capsys.readouterr().out)

"""Whatever path a person gives to a command: one sentence says what is wrong with it, and nothing is left behind.

The commands and their options are read from the command line itself, so that a new one is tried as well.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest
import typer
from typer.testing import CliRunner

from kledger.contract.errors import BackupMismatch
from ledger.backup.manifest import writing_to
from ledger.runtime.whole_file import in_place
from producers.cli.main import app
from tests.doors.scripted_node import ScriptedNode, commanded_node

ASKED_OF_THE_NODE = {("replay", "into"), ("backup", "directory")}
"""Paths of the node's machine; tests/journeys/test_command.py has a node refuse them."""
SHARED = "token_file"
BESIDE = {
    ("audit", "checkpoints"): ["--data", "{node}"],
    ("audit", "key"): ["--data", "{node}"],
    ("audit", "repair_from"): ["--data", "{node}"],
    ("backup", "key"): ["--check"],
    ("restore-backup", "directory"): ["--data", "data"],
    ("restore-backup", "key"): ["--data", "data"],
    ("repair", "source"): ["--data", "{node}"],
    ("repair", "data"): ["--from", "{backup}"],
    ("repair", "into"): ["--data", "{node}", "--from", "{backup}"],
    ("profile set", "content"): ["--user", "ann"],
    ("profile patch", "content"): ["--user", "ann"],
    ("sql", "out"): ["SELECT 1", "--format", "csv"],
    ("chain accept", "data"): ["--new", "--reason", "why"],
    ("token create", "data"): ["--new", "--agent", "scribe"],
    ("up", "data"): ["--http", "127.0.0.1:0"],  # whoever tests may have a node at the usual address
}
"""What the path of an option needs beside it to be looked at."""


def commands(command: Any, *names: str) -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "commands"):
        yield " ".join(names), command
        return
    for name, below in command.commands.items():
        yield from commands(below, *names, name)


COMMANDS = dict(commands(typer.main.get_command(app)))


def is_path(parameter: Any) -> bool:
    """What is typed as a path, and what says of itself that it is a file or a directory."""
    return "Path" in str(parameter.type_descriptor.annotation) or any(
        word in said(parameter) for word in ("FILE", "DIR", " file,")
    )


def said(parameter: Any) -> str:
    return f"{parameter.metavar or ''} {getattr(parameter, 'help', None) or ''}"


PATHS = [
    (name, parameter)
    for name, command in COMMANDS.items()
    for parameter in command.params
    if is_path(parameter) and parameter.name != SHARED
]


def is_directory(parameter: Any) -> bool:
    return "dir" in said(parameter).lower() or parameter.name == "data"


def line(name: str, stated: dict[str, str]) -> list[str]:
    """A command with these parameters, and something that it may take for each that it needs."""
    words = name.split()
    for parameter in COMMANDS[name].params:
        value = stated.get(parameter.name or "")
        if value is None:
            if not parameter.required:
                continue
            kind = parameter.type_descriptor.annotation
            value = get_args(kind)[0] if get_origin(kind) is Literal else "1"
        elif "@FILE" in said(parameter):
            value = f"@{value}"
        values = [value] * max(1, parameter.nargs)
        words += [parameter.opts[0], *values] if parameter.opts[0].startswith("-") else values
    return words


def closed(folder: Path) -> Path:
    """A directory in which nothing can be made, by whoever runs this."""
    if os.geteuid() == 0:
        return Path("/proc/self")
    folder.mkdir(mode=0o500)
    return folder


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedNode]:
    with commanded_node(monkeypatch) as node:
        node.says("POST /api/admin/sql", {"columns": [], "types": [], "rows": [], "truncated": False, "position": 1})
        node.says("GET /api/v1/knowledge", {"results": [], "total": 0, "count": 0, "position": 1})
        yield node


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize("kind", ["beneath-a-file", "missing-folder", "closed-folder", "long-name", "directory"])
@pytest.mark.parametrize(
    ("name", "parameter"), PATHS, ids=[f"{name} {parameter.name}".replace(" ", "-") for name, parameter in PATHS]
)
def test_a_path_that_cannot_be_used_is_named_in_one_sentence_and_nothing_is_left(
    name: str, parameter: Any, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "directory" and is_directory(parameter):
        return  # which is what it asks for
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KLEDGER_DATA", raising=False)
    (tmp_path / "file").write_text("kept")
    (tmp_path / "1").write_text("{}")  # what other parameters name
    (tmp_path / "mark").mkdir()
    (tmp_path / "node" / "broker" / "jetstream").mkdir(parents=True)
    with writing_to(tmp_path / "backup"):
        pass
    path = {
        "beneath-a-file": tmp_path / "file" / "mark",
        "missing-folder": tmp_path / "missing" / "mark",
        "closed-folder": closed(tmp_path / "closed") / "mark",
        "long-name": tmp_path / ("mark" * 100),
        "directory": tmp_path / "mark",
    }[kind]
    before = entries(tmp_path)
    beside = [
        word.format(node=tmp_path / "node", backup=tmp_path / "backup")
        for word in BESIDE.get((name, parameter.name), [])
    ]
    ran = CliRunner().invoke(app, [*line(name, {parameter.name or "": str(path)}), *beside])
    assert isinstance(ran.exception, SystemExit), ran.exception
    assert ran.exit_code in (1, 2, 3), ran.output
    assert "Traceback" not in ran.output
    assert entries(tmp_path) == before
    if (name, parameter.name) not in ASKED_OF_THE_NODE:
        told = "".join(ran.stderr.split())
        assert "mark" in told, ran.stderr


def entries(folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(folder.rglob("*")):
        found[str(path)] = path.read_text() if path.is_file() else f"{path.stat().st_mode:o}"
    return found


@pytest.mark.parametrize(
    ("name", "parameter"), PATHS, ids=[f"{name} {parameter.name}".replace(" ", "-") for name, parameter in PATHS]
)
def test_an_empty_path_is_not_taken_for_the_current_directory(
    node: ScriptedNode, name: str, parameter: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A script whose variable holds nothing types one: a node closed the folder to others, and a backup went there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KLEDGER_DATA", raising=False)
    (tmp_path / "notes.md").write_text("kept")
    (tmp_path / "1").write_text("{}")  # what other parameters name
    (tmp_path / "node" / "broker" / "jetstream").mkdir(parents=True)
    tmp_path.chmod(0o755)
    before = entries(tmp_path)
    beside = [word.format(node="node", backup="backup") for word in BESIDE.get((name, parameter.name), [])]
    ran = CliRunner().invoke(app, [*line(name, {parameter.name or "": ""}), *beside])
    assert (type(ran.exception), ran.exit_code) in [(SystemExit, 1), (SystemExit, 2)], ran.output
    assert "empty" in ran.stderr or "''" in ran.stderr or "@FILE" in said(parameter)
    assert not node.asked
    assert entries(tmp_path) == before
    assert tmp_path.stat().st_mode & 0o777 == 0o755


@pytest.mark.usefixtures("node")
def test_a_token_file_that_cannot_be_read_is_named_by_every_command_that_asks_a_node(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    named = 0
    for name, command in COMMANDS.items():
        named_here = {parameter.name for parameter in command.params}
        if SHARED not in named_here or "data" in named_here:  # which works on files
            continue
        ran = CliRunner().invoke(app, [*line(name, {}), "--token-file", str(tmp_path / "missing" / "mark")], input="")
        assert ran.exception is None or isinstance(ran.exception, SystemExit), (name, ran.exception)
        assert not list(tmp_path.iterdir()), name
        if "mark" in ran.stderr:
            assert ran.exit_code in (1, 2), name
            assert "Error)" not in ran.stderr, name  # the word of a library's class
            named += 1
    assert named > 40


@pytest.mark.usefixtures("node")
def test_an_empty_token_file_is_told_as_empty_and_no_request_is_sent_without_a_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text(" \n")
    ran = CliRunner().invoke(app, ["whoami", "--token-file", str(tmp_path / "token")])
    assert ran.exit_code == 1
    assert f"the token file {tmp_path / 'token'} is empty" in ran.stderr


@pytest.mark.usefixtures("node")
def test_a_file_that_is_there_is_written_over_with_force_alone_and_a_link_stays_one(tmp_path: Path) -> None:
    there, link = tmp_path / "rows.csv", tmp_path / "link.csv"
    there.write_text("kept")
    link.symlink_to(there)
    for stated in (there, link):
        ran = CliRunner().invoke(app, ["sql", "SELECT 1", "--out", str(stated)])
        assert (ran.exit_code, there.read_text()) == (1, "kept")
        assert "--force" in ran.stderr
    assert CliRunner().invoke(app, ["sql", "SELECT 1", "--out", str(link), "--force"]).exit_code == 0
    assert there.read_text() != "kept"
    assert link.is_symlink()
    assert sorted(tmp_path.iterdir()) == [link, there]


def test_what_ends_while_a_file_is_written_leaves_what_was_there(tmp_path: Path) -> None:
    there = tmp_path / "rows.csv"
    there.write_text("kept")

    def fails() -> None:
        with in_place(there, over=True) as draft:
            draft.write_text("half")
            draft.with_name(draft.name + ".wal").write_text("of a database")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert list(tmp_path.iterdir()) == [there]
    assert there.read_text() == "kept"


def test_an_answer_may_go_to_a_device(node: ScriptedNode) -> None:
    assert CliRunner().invoke(app, ["sql", "SELECT 1", "--format", "csv", "--out", "/dev/null"]).exit_code == 0
    assert node.asked


def test_the_rights_of_a_directory_of_somebody_are_left_as_they_are(tmp_path: Path) -> None:
    """One with other files in it was named by mistake: it is neither closed to others nor written into."""
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    (home / "letter").write_text("kept")
    before = entries(tmp_path)
    for words in (["nats-config", str(home), "--publisher", "agent:a"], ["export-tree", str(home)]):
        assert CliRunner().invoke(app, words).exit_code == 1
    with pytest.raises(BackupMismatch), writing_to(home):
        pass
    assert entries(tmp_path) == before


def test_a_configuration_with_a_publisher_that_is_none_makes_nothing(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["nats-config", str(tmp_path / "broker"), "--publisher", "nobody"])
    assert (ran.exit_code, list(tmp_path.iterdir())) == (1, [])


def test_a_token_is_not_taken_back_from_a_directory_that_was_mistyped(tmp_path: Path) -> None:
    ran = CliRunner().invoke(app, ["token", "revoke", "t-1", "--data", str(tmp_path / "dta")])
    assert (ran.exit_code, list(tmp_path.iterdir())) == (1, [])


ROOT: Any = typer.main.get_command(app)
GROUPS = [command for command in ROOT.commands.values() if hasattr(command, "commands")]
SHARED_WORDS = sorted(
    word for word, groups in Counter(word for group in GROUPS for word in group.commands).items() if groups > 1
)
"""What several groups have a command of, which a command without any is given too."""


@pytest.mark.parametrize("word", [*SHARED_WORDS, "check", "create", "status", "help"])
def test_a_word_that_is_a_command_elsewhere_makes_no_directory(
    node: ScriptedNode, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`kledger backup list` made a backup into a directory of that name, as `token list` invites it."""
    monkeypatch.chdir(tmp_path)
    told = 0
    for name, parameter in PATHS:
        if parameter.param_type_name == "argument" and is_directory(parameter):
            ran = CliRunner().invoke(app, [*line(name, {parameter.name or "": word})])
            assert (ran.exit_code, list(tmp_path.iterdir())) in [(1, []), (2, [])], (name, ran.output)
            assert not node.asked, name
            told += f"./{word}" in ran.stderr
    assert told == 3  # backup, export-tree, nats-config


def test_a_directory_with_the_name_of_a_command_is_taken_where_it_is_there_or_written_as_one(
    node: ScriptedNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert "./list" in CliRunner().invoke(app, ["export-tree", "list"]).stderr
    assert not node.asked
    assert "./list" not in CliRunner().invoke(app, ["export-tree", "./list"]).stderr
    assert node.asked
    (tmp_path / "show").mkdir()
    assert "./show" not in CliRunner().invoke(app, ["export-tree", "show"]).stderr
    said = CliRunner().invoke(app, ["backup", "list"]).stderr
    assert "kledger backup --check DIR" in said
    assert "kledger restore-backup DIR" in said


def test_an_export_without_a_node_makes_no_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KLEDGER_URL", "http://127.0.0.1:1")
    ran = CliRunner().invoke(app, ["export-tree", str(tmp_path / "tree")])
    assert (ran.exit_code, list(tmp_path.iterdir())) == (3, [])


def test_every_command_that_has_a_path_is_tried() -> None:
    tried = {name for name, _ in PATHS}
    assert tried >= {
        "sql",
        "prove",
        "nats-config",
        "token create",
        "export-tree",
        "replay",
        "backup",
        "key rotate",
        "up",
    }

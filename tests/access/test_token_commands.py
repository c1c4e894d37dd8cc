"""`kledger token`: a token is for a node that is there, the first one is told of, and ids can be copied."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ledger.runtime.data_directory import prepare_data_directory
from producers.access.tokens import read_records, tokens_file
from producers.cli.main import app


def token(*words: str) -> Result:
    return CliRunner().invoke(app, ["token", *words])


def as_written(said: str) -> str:
    """Without the ends of lines that a screen made."""
    return " ".join(said.split())


@pytest.mark.parametrize("there", [False, True])
def test_in_a_folder_that_no_node_knows_no_token_is_made_and_what_to_do_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    if there:
        (tmp_path / ".kledger").mkdir()
        (tmp_path / ".kledger" / "letter").write_text("somebody's own")
    before = sorted(tmp_path.rglob("*"))
    for words in (["create", "--user", "ann"], ["list"], ["revoke", "t-1"]):
        ran = token(*words)
        assert ran.exit_code == 1
        assert "with --data" in ran.stderr
        assert ("--new" in ran.stderr) == (words[0] == "create")
        assert sorted(tmp_path.rglob("*")) == before


def test_a_token_is_made_where_a_node_ran_or_will_run(tmp_path: Path) -> None:
    ran, fresh = tmp_path / "ran", tmp_path / "fresh"
    prepare_data_directory(ran)
    (ran / "broker").mkdir()
    assert token("create", "--user", "ann", "--data", str(ran)).exit_code == 0
    assert token("create", "--user", "ann", "--data", str(fresh), "--new").exit_code == 0
    assert token("create", "--user", "bob", "--data", str(fresh)).exit_code == 0
    assert len(read_records(tokens_file(fresh))) == 2


def test_the_first_token_says_that_the_node_asks_for_one_from_now_on_and_no_later_one_does(tmp_path: Path) -> None:
    data = ["--data", str(tmp_path), "--new"]
    first = as_written(token("create", "--user", "ann", *data).stdout)
    assert "from now on the node asks for a token at every request" in first
    assert "kledger token create --role operator" in first
    later = token("create", "--role", "operator", *data)
    assert "from now on" not in later.stdout
    assert json.loads(token("create", "--user", "ann", *data, "--json").stdout)["first"] is False


def test_an_operator_who_begins_is_not_told_to_make_a_token_of_an_operator(tmp_path: Path) -> None:
    told = token("create", "--role", "operator", "--data", str(tmp_path), "--new", "--json")
    assert json.loads(told.stdout)["first"] is True
    said = as_written(token("create", "--role", "operator", "--data", str(tmp_path / "b"), "--new").stdout)
    assert "from now on" in said
    assert "Make one for yourself" not in said


@pytest.mark.parametrize("name", ["", "the desk"])
def test_a_token_keeps_the_name_that_it_was_given_and_no_other_whatever_it_is_bound_to(
    tmp_path: Path, name: str
) -> None:
    every = ["--user", "ann", "--agent", "scribe", "--team", "platform", "--entity", "repo:code"]
    made = token("create", *every, "--name", name, "--data", str(tmp_path), "--new", "--json")
    told = json.loads(made.stdout)
    assert told["name"] == name
    assert told["bound"]["repo"] == ["code"]
    (listed,) = json.loads(token("list", "--data", str(tmp_path), "--json").stdout)["tokens"]
    assert listed["name"] == name


@pytest.mark.parametrize("columns", [60, 80, 100, 140])
def test_each_id_of_a_list_stands_in_one_piece_on_any_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    bound = [word for name in ("platform", "frontend", "harbor") for word in ("--team", name)]
    for _ in range(3):
        told = token(
            "create", *bound, "--user", "ann", "--name", "for the desk in the hall", "--data", str(tmp_path), "--new"
        )
        assert told.exit_code == 0
    shown = token("list", "--data", str(tmp_path)).stdout
    for record in read_records(tokens_file(tmp_path)):
        assert record.id in shown

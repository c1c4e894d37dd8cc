"""What do the commands about resources send, and where do they take a secret from?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from producers.cli.main import app
from tests.doors.scripted_node import ScriptedNode

SAVED = {"id": "a/b", "position": 7, "version": 1, "event_id": "e-1", "duplicate": False}
SETTLED = {"views": [{"position": 9}]}


@pytest.fixture
def node(node: ScriptedNode) -> ScriptedNode:
    node.says("GET /api/admin/status", SETTLED)
    return node


def resource(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, ["resource", *arguments], input=stdin)


@pytest.mark.parametrize("source", ["stdin", "file"])
def test_save_takes_the_secret_from_stdin_or_a_file_and_says_all_the_rest(
    node: ScriptedNode, tmp_path: Path, source: str
) -> None:
    node.says("POST /api/resource", SAVED, 201)
    file = tmp_path / "secret"
    file.write_text("密码\n第二行\n", "utf-8")
    ran = resource(
        *(
            "save",
            "a/b",
            "--title",
            "T",
            "--body",
            "B",
            "--type",
            "cookie",
            "--meta",
            "expires_at=2026-03-07T10:00:00Z",
        ),
        *("--secure-file", "-" if source == "stdin" else str(file), "--scope", "public", "--share-with", "team:web"),
        *("--owner", "team:ops", "--expected-version", "3", "--trace", "t-1"),
        stdin="密码\n第二行\n" if source == "stdin" else None,
    )
    assert ran.exit_code == 0, ran.output
    assert ran.stdout.strip() == "a/b saved, version 1 at position 7"
    (told,) = node.told
    assert told.body == {
        "id": "a/b",
        "title": "T",
        "body": "B",
        "secure_body": "密码\n第二行",
        "content_type": "cookie",
        "metadata": {"expires_at": "2026-03-07T10:00:00Z"},
        "scopes": ["public"],
        "owner": "team:ops",
        "shared_with": ["team:web"],
        "expected_version": 3,
    }
    assert told.headers["x-ledger-trace-id"] == "t-1"


def test_no_option_takes_the_secret_itself() -> None:
    for option in ("--secure-body", "--secret", "--secure"):
        assert resource("save", "a", "--title", "t", option, "s").exit_code == 2
    assert "other processes" in " ".join(resource("save", "--help").stdout.split())


def test_a_file_that_cannot_be_read_and_stdin_for_two_are_refused_before_anything_is_sent(
    node: ScriptedNode, tmp_path: Path
) -> None:
    (tmp_path / "no-text").write_bytes(b"\xff\xfe")
    for wrong in (
        ("--secure-file", str(tmp_path / "none")),
        ("--secure-file", str(tmp_path / "no-text")),
        ("--secure-file", "-", "--body-file", "-"),
        ("--body", "b", "--body-file", "-"),
    ):
        ran = resource("save", "a", "--title", "t", *wrong, stdin="s")
        assert ran.exit_code == 2, ran.output
    assert node.told == []


def test_show_hides_the_secret_unless_it_is_told_to_reveal_it(node: ScriptedNode) -> None:
    found = {
        **{
            "id": "a/b",
            "title": "T",
            "body": "B",
            "secure_body": "s3cret",
            "secure": "given",
            "content_type": "cookie",
        },
        **{
            "metadata": {},
            "expired": False,
            "valid": True,
            "has_secure": True,
            "scopes": ["public"],
            "owner": "user:a",
        },
        **{
            "visibility": "public",
            "shared_with": [],
            "version": 1,
            "position": 7,
            "created_at": "c",
            "updated_at": "u",
        },
        "status": "active",
    }
    node.says("GET /api/resource/a%2Fb", found)
    for form in ((), ("--json",)):
        assert "s3cret" not in resource("show", "a/b", *form).stdout
        assert "s3cret" in resource("show", "a/b", "--reveal", *form).stdout
    assert json.loads(resource("show", "a/b", "--reveal", "--json").stdout) == found


def test_retire_destroys_the_secret_only_when_it_is_told_to(node: ScriptedNode) -> None:
    node.says("DELETE /api/resource/a%2Fb", SAVED)
    resource("retire", "a/b", "--reason", "old")
    ran = resource("retire", "a/b", "--destroy-secret")
    assert [asked.query for asked in node.told] == [{"reason": "old"}, {"destroy_secret": "true"}]
    assert "its secret is destroyed" in ran.stdout


def test_resources_that_are_saved_with_an_item_come_out_of_a_file_or_stdin(node: ScriptedNode, tmp_path: Path) -> None:
    node.says("POST /api/knowledge", SAVED, 201)
    brought = [{"id": "credentials/a", "title": "Account", "secure_body": "the-secret"}]
    file = tmp_path / "resources.json"
    file.write_text(json.dumps(brought), "utf-8")
    item = ["save", "--types", "tool", "--content", "c"]
    for named in (str(file), "-"):
        ran = CliRunner().invoke(app, [*item, "--resources-file", named], input=json.dumps(brought))
        assert ran.exit_code == 0, ran.output
        assert node.told[-1].body["resources"] == brought


@pytest.mark.parametrize("held", ['{"secure_body": "the-secret"}', '["the-secret"]', "the-secret", None])
def test_a_file_that_holds_no_resources_is_wrong_use_and_nothing_of_it_is_shown(
    node: ScriptedNode, tmp_path: Path, held: str | None
) -> None:
    file = tmp_path / "resources.json"
    if held is not None:
        file.write_text(held, "utf-8")
    ran = CliRunner().invoke(app, ["save", "--types", "tool", "--content", "c", "--resources-file", str(file)])
    assert ran.exit_code == 2, ran.output
    assert "--resources-file" in ran.output
    assert "the-secret" not in ran.output
    assert node.told == []


def test_stdin_is_read_once(node: ScriptedNode) -> None:
    ran = CliRunner().invoke(app, ["save", "--types", "tool", "--content", "-", "--resources-file", "-"], input="[]")
    assert ran.exit_code == 2, ran.output
    assert node.told == []

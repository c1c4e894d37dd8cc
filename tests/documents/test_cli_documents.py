"""What the commands about documents send and say."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kledger.contract.documents import fault_of_id
from producers.cli.main import app
from tests.doors.scripted_node import ScriptedNode, scripted_node

DONE = {
    **{"id": "a", "title": "A", "position": 7, "version": 1, "event_id": "e", "duplicate": False, "sections": 1},
    **{"saved": 2, "unchanged": 1, "retired": 0},
}
SETTLED = {"views": [{"position": 9}]}
REFUSED = {"error": {"code": "unreadable_document", "message": "the file cannot be read: broken", "details": {}}}


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedNode]:
    with scripted_node() as running:
        running.says("GET /api/admin/status", SETTLED)
        monkeypatch.setenv("KLEDGER_URL", running.url)
        yield running


def kledger(*arguments: str) -> Result:
    return CliRunner().invoke(app, [*arguments])


def shelf(folder: Path) -> Path:
    """A directory with two files that are read, and two that are not."""
    top = folder / "shelf"
    (top / "in").mkdir(parents=True)
    (top / ".git").mkdir()
    (top / "b.md").write_text("# B")
    (top / "in" / "a.TXT").write_text("a")
    (top / "picture.png").write_bytes(b"png")
    (top / ".git" / "c.md").write_text("# C")
    return top


def test_a_directory_is_ingested_file_by_file_under_its_name(node: ScriptedNode, tmp_path: Path) -> None:
    node.says("POST /api/documents", DONE, 201)
    ran = kledger("ingest", str(shelf(tmp_path)), "--scope", "public", "--owner", "team:web", "--wait", "0")
    assert ran.exit_code == 0, ran.output
    sent = [each.body for each in node.told if each.path == "/api/documents"]
    assert sent == [
        {
            "id": f"shelf/{name}",
            "scopes": ["public"],
            "owner": "team:web",
            "file": {"name": name.rpartition("/")[2], "content": base64.b64encode(content).decode()},
        }
        for name, content in (("b.md", b"# B"), ("in/a.TXT", b"a"))
    ]
    assert "2 documents: 4 chunks saved, 2 unchanged, 0 retired" in ran.stdout


def test_a_file_that_does_not_say_what_it_is_is_told_the_option_for_it(node: ScriptedNode, tmp_path: Path) -> None:
    missing = {"field": "content_type", "reason": "is missing, and no name says what the file is: write text"}
    told = {"code": "invalid_payload", "message": f"content_type {missing['reason']}", "details": {"errors": [missing]}}
    node.says("POST /api/documents", {"error": told}, 422)
    (tmp_path / "notes.xyz").write_text("a")
    ran = kledger("ingest", str(tmp_path / "notes.xyz"), "--json")
    assert json.loads(ran.stdout)["documents"][0]["error"]["message"].startswith("--content-type is missing, and")


def test_one_chunk_is_no_chunks(node: ScriptedNode, tmp_path: Path) -> None:
    node.says("POST /api/documents", {**DONE, "saved": 1}, 201)
    (tmp_path / "b.md").write_text("# B")
    assert "1 document: 1 chunk saved, " in kledger("ingest", str(tmp_path / "b.md"), "--wait", "0").stdout


def test_empty_files_and_files_of_other_types_are_named_and_counted(node: ScriptedNode, tmp_path: Path) -> None:
    node.says("POST /api/documents", DONE, 201)
    node.says("POST /api/documents", DONE, 201)
    node.says("POST /api/documents", DONE, 201)
    node.says("POST /api/documents", DONE, 201)
    top = shelf(tmp_path)
    (top / "empty.md").touch()
    (top / "gone.md").symlink_to(top / "nowhere.md")
    ran = kledger("ingest", str(top), "--wait", "0", "--json")
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["skipped"] == [
        {"id": "shelf/empty.md", "reason": "empty"},
        {"id": "shelf/gone.md", "reason": "a link: name the file itself"},
        {"id": "shelf/picture.png", "reason": "not a type that is read"},
    ]
    said = " ".join(kledger("ingest", str(top), "--wait", "0").stdout.split())
    assert "shelf/empty.md left out: empty" in said
    assert "3 files left out" in said


def test_a_link_in_a_directory_is_not_followed_and_one_that_is_named_is(node: ScriptedNode, tmp_path: Path) -> None:
    for _ in range(2):
        node.says("POST /api/documents", DONE, 201)
    top = tmp_path / "shelf"
    top.mkdir()
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "diary.md").write_text("Mine alone.")
    (top / "b.md").write_text("# B")
    (top / "file.md").symlink_to(tmp_path / "outside" / "diary.md")
    (top / "folder").symlink_to(tmp_path / "outside")
    (top / "loop").symlink_to(top)
    ran = kledger("ingest", str(top), "--wait", "0", "--json")
    assert ran.exit_code == 0, ran.output
    assert [each["id"] for each in json.loads(ran.stdout)["skipped"]] == ["shelf/file.md", "shelf/folder", "shelf/loop"]
    assert [each.body["id"] for each in node.told if each.path == "/api/documents"] == ["shelf/b.md"]
    assert kledger("ingest", str(top / "file.md"), "--wait", "0").exit_code == 0


def test_two_files_of_long_paths_are_two_documents(node: ScriptedNode, tmp_path: Path) -> None:
    for _ in range(2):
        node.says("POST /api/documents", DONE, 201)
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    for name in ("one.md", "two.md"):
        (deep / name).write_text(f"# {name}")
    ran = kledger("ingest", str(tmp_path / ("d" * 100)), "--wait", "0", "--json")
    assert ran.exit_code == 0, ran.output
    ids = [each.body["id"] for each in node.told if each.path == "/api/documents"]
    assert len(set(ids)) == 2
    assert all(fault_of_id(each) is None for each in ids)


def test_what_one_file_is_can_be_stated(node: ScriptedNode, tmp_path: Path) -> None:
    node.says("POST /api/documents", DONE, 201)
    (tmp_path / "NOTES").write_text("One.")
    ran = kledger("ingest", str(tmp_path / "NOTES"), "--content-type", "text", "--wait", "0")
    assert ran.exit_code == 0, ran.output
    assert [each.body["content_type"] for each in node.told if each.path == "/api/documents"] == ["text"]


def test_a_file_that_is_refused_is_told_and_the_others_are_ingested(node: ScriptedNode, tmp_path: Path) -> None:
    node.says("POST /api/documents", REFUSED, 422)
    node.says("POST /api/documents", DONE, 201)
    ran = kledger("ingest", str(shelf(tmp_path)), "--under", "of/ann/", "--wait", "0", "--json")
    assert ran.exit_code == 1, ran.output
    answer = json.loads(ran.stdout)
    assert (answer["refused"], answer["saved"]) == (1, 2)
    assert answer["documents"][0]["id"] == "of/ann/shelf/b.md"
    assert answer["documents"][0]["error"]["code"] == "unreadable_document"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "Missing argument"),
        (["nowhere.md"], "nowhere.md cannot be read"),
        (["b.md", "in/a.TXT", "--title", "T"], "give it with one file"),
        ([".git"], "there is no file that is read"),
        (["picture.png", "--content-type", "image/png"], "'image/png' is not read: write one of text, markdown, html"),
        (["empty.md"], "left out: empty.md (empty)"),
    ],
)
def test_what_cannot_be_ingested_is_said_before_anything_is_sent(
    node: ScriptedNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    top = shelf(tmp_path)
    (top / ".git" / "c.md").unlink()
    (top / "empty.md").touch()
    monkeypatch.chdir(top)
    ran = kledger("ingest", *arguments)
    assert ran.exit_code == 2
    assert says in " ".join(ran.stderr.split())
    assert not [each for each in node.told if each.path == "/api/documents"]


def test_a_document_is_shown_with_its_chunks_listed_and_deleted(node: ScriptedNode) -> None:
    listed = {
        **{"id": "shelf/b.md", "title": "B", "content_type": "text/markdown", "url": None, "summary": "s"},
        **{"characters": 1_200, "resource_ids": ["r"], "scopes": ["public"], "owner": "user:ann"},
        **{"visibility": "public", "version": 2, "position": 8, "created_at": "2026-03-05T12:00:00Z"},
        **{"updated_at": "2026-03-05T12:00:00Z", "status": "active"},
    }
    chunk = {"id": "chunk-1", "section": 0, "content": "What it says.", "status": "active"}
    sections = [{"heading": "Head", "level": 1, "summary": "s"}]
    page = {"count": 1, "total": 1, "degraded": []}
    node.says("GET /api/documents", {"results": [listed], "next": None, "position": 8, **page})
    node.says("GET /api/documents/shelf%2Fb.md", {**listed, "sections": sections, "chunks": [chunk], **page})
    node.says("DELETE /api/documents/shelf%2Fb.md", {"id": "shelf/b.md", "position": 9, "event_id": "e"})
    assert "shelf/b.md" in kledger("document", "list", "--status", "all").stdout
    shown = kledger("document", "show", "shelf/b.md").stdout
    assert "What it says." in shown
    assert "Head" in shown
    ran = kledger("document", "delete", "shelf/b.md", "--reason", "old")
    assert ran.stdout.strip() == "removed shelf/b.md at position 9"

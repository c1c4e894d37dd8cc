"""Files and directories that a tree may not have: each gets a sentence, nothing hangs, and the rest is read."""

from __future__ import annotations

import json
import os
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kledger.contract.errors import IllegalTree
from producers.tree.entries import payload_of
from producers.tree.importing import import_tree
from producers.tree.reading import read_tree
from producers.tree.writing import export_tree
from tests.temporary_files import room
from tests.tree.in_process import in_process

ENTRY = {"task": "Deploy", "content": "Deploy on Tuesday.", "types": ["strategy"]}
NOBODY = 65534
ROOT = Path(room() or tempfile.gettempdir())


@contextmanager
def without_rights() -> Iterator[None]:
    """As a user to whom modes mean something, where the tests are run by root."""
    if os.geteuid():
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree with one good file in it, reachable for everybody."""
    directory = tmp_path / "tree"
    (directory / "global").mkdir(parents=True)
    (directory / "global" / "good.json").write_text(json.dumps([ENTRY]))
    for each in (directory, *directory.parents):
        if each != ROOT and each.is_relative_to(ROOT):
            each.chmod(0o755)
    return directory


def test_a_pipe_in_a_tree_is_refused_with_a_sentence_and_not_waited_for(tree: Path) -> None:
    os.mkfifo(tree / "global" / "pipe.json")
    with in_process() as ledger:
        brought = import_tree(ledger, tree)
    assert brought.saved == 1
    (refused,) = brought.tree.refused
    assert (refused["file"], refused["code"]) == ("global/pipe.json", "illegal_tree")
    assert "not a file" in refused["message"]


def test_a_socket_and_a_directory_with_a_files_name_are_refused_or_passed_over(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tree / "global" / "folder.json").mkdir()
    monkeypatch.chdir(tree / "global")  # the path of a socket has at most 107 bytes
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket.json")
        found = read_tree(tree)
    assert [each["file"] for each in found.refused] == ["global/socket.json"]
    assert len(found.entries) == 1


def test_a_name_that_is_no_text_is_refused_or_passed_over_and_the_rest_comes(tree: Path) -> None:
    for place in (b"agents/\xff\xfe/tools.json", b"users/\xe9/memories.json", b"global/\xff.json", b"notes/\xff.md"):
        file = Path(os.fsdecode(os.fsencode(tree) + b"/" + place))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("[]")
    with in_process() as ledger:
        brought = import_tree(ledger, tree)
    assert brought.saved == 1
    refused = [(each["file"], each["code"]) for each in brought.tree.refused]
    assert refused == [
        ("agents/\\udcff\\udcfe/tools.json", "illegal_tree"),
        ("global/\\udcff.json", "illegal_tree"),
        ("users/\\udce9/memories.json", "illegal_tree"),
    ]
    assert brought.tree.skipped == ["notes/\\udcff.md"]


_json = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "a", "user:ann"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "category"]), inner, max_size=2),
    max_leaves=4,
)
_fields = ("id", "task", "content", "type", "types", "tags", "scopes", "owner", "source", "eval", "acl", "memory")
_places = (
    "global/tools",
    "agents/a/tools",
    "users/ann/habits",
    "users/ann/knowledge",
    "shared/team/t/plans",
    "retired",
)


@given(
    entry=st.dictionaries(st.sampled_from((*_fields, "version", "status", "created_at")), _json),
    place=st.sampled_from(_places),
)
def test_whatever_an_entry_holds_it_becomes_a_payload_that_the_node_judges(entry: dict[str, Any], place: str) -> None:
    payload = payload_of(entry, PurePosixPath(f"{place}.json"))
    stated = {name: value for name, value in payload.items() if name in entry}
    unlike = {name for name, value in stated.items() if value != entry[name]}
    assert unlike <= {"tags", "eval"}  # what a file adds a category to, or takes the counts of


def test_a_directory_that_cannot_be_read_is_refused_and_the_rest_comes(tree: Path) -> None:
    closed = tree / "agents"
    closed.mkdir(mode=0o000)
    try:
        with without_rights():
            found = read_tree(tree)
    finally:
        closed.chmod(0o755)
    (refused,) = found.refused
    assert (refused["file"], refused["code"]) == ("agents", "illegal_tree")
    assert len(found.entries) == 1


def test_a_tree_that_cannot_be_read_at_all_gets_a_sentence(tree: Path) -> None:
    tree.chmod(0o311)
    try:
        with without_rights(), pytest.raises(IllegalTree, match="cannot be read"):
            read_tree(tree)
    finally:
        tree.chmod(0o755)


@pytest.mark.parametrize("below", [False, True])
def test_an_export_into_a_directory_that_may_not_be_written_gets_a_sentence(tree: Path, *, below: bool) -> None:
    closed = tree / "closed"
    closed.mkdir()
    closed.chmod(0o555)
    with in_process() as ledger:
        ledger.save("Deploy", "Deploy on Tuesday.", ["strategy"])
        with without_rights(), pytest.raises(IllegalTree, match="cannot be written"):
            export_tree(ledger, closed / "new" if below else closed)


def test_an_export_onto_a_file_or_a_pipe_gets_a_sentence(tree: Path) -> None:
    os.mkfifo(tree / "pipe")
    with in_process() as ledger:
        for target in (tree / "pipe", tree / "global" / "good.json", tree / "global" / "good.json" / "below"):
            with pytest.raises(IllegalTree, match="cannot be written"):
                export_tree(ledger, target)


def test_an_export_replaces_a_pipe_that_stands_in_the_place_of_one_of_its_files(tree: Path, tmp_path: Path) -> None:
    with in_process() as ledger:
        ledger.save("Deploy", "Deploy on Tuesday.", ["strategy"], scopes=["public"])
        written = export_tree(ledger, tmp_path / "out")
        (name,) = written.files
        (tmp_path / "out" / name).unlink()
        os.mkfifo(tmp_path / "out" / name)
        export_tree(ledger, tmp_path / "out")
    assert (tmp_path / "out" / name).is_file()


def test_a_directory_that_is_no_tree_is_refused_with_what_a_tree_is(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "todo.json").write_text("[]")
    (tmp_path / "package.json").write_text("{}")
    (tmp_path / "empty").mkdir()
    with in_process() as ledger:
        for directory in (tmp_path, tmp_path / "empty"):
            with pytest.raises(IllegalTree, match="holds no tree of knowledge: one has JSON files in global/"):
                import_tree(ledger, directory)


def test_an_export_of_nothing_and_an_empty_file_in_its_place_are_trees(tmp_path: Path) -> None:
    (tmp_path / "by hand" / "global").mkdir(parents=True)
    (tmp_path / "by hand" / "global" / "tools.json").write_text("[]")
    with in_process() as ledger:
        export_tree(ledger.acting_as(user="ann"), tmp_path / "nothing")
        for directory in (tmp_path / "nothing", tmp_path / "by hand"):
            brought = import_tree(ledger, directory)
            assert (brought.saved, brought.tree.refused) == (0, [])

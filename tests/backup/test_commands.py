"""`kledger backup`, `restore-backup`, `repair`: what do they print, and when do they exit with 1?"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from kledger.contract.errors import NotOwner, Unauthenticated
from kledger.contract.scopes import Caller
from ledger.backup.manifest import load
from ledger.backup.writing import back_up
from producers.access.book import TokenBook
from producers.access.tokens import create_token, read_records, tokens_file
from producers.cli.main import app
from producers.operations.admin import jobs as admin
from projections.live.files import live_file
from tests.backup.kept import backed_up, history
from tests.conftest import LoopThread
from tests.doors.live_desk import live_desk
from tests.doors.scripted_node import ScriptedNode, scripted_node
from tests.doors.test_cli_operating import kledger, runs, said
from tests.house.project import ROOT
from tests.integrity.logs import ListedLedger
from tests.journeys.running_node import caught_up, items, result_of, running
from tests.patience import PATIENCE

BACKED_UP: dict[str, Any] = {
    "directory": "/backups/ledger",
    "position": 1234,
    "head": "ab" * 32,
    "root": "cd" * 32,
    "added": 34,
    "files": 1,
    "segments": 3,
    "signed": 1230,
    "seconds": 0.5,
}


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedNode]:
    with scripted_node() as running:
        monkeypatch.setenv("KLEDGER_URL", running.url)
        yield running


@pytest.mark.parametrize("command", ["backup --check {}", "restore-backup {} --data {}-new"])
def test_a_mistyped_directory_is_no_damaged_backup(tmp_path: Path, command: str) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "photo.png").touch()
    (tmp_path / "file").touch()
    (tmp_path / "emptied" / "events").mkdir(parents=True)
    (tmp_path / "emptied" / "events" / "000000000000001-000000000000002.parquet").touch()
    for name, code, told in (
        ("bakup", "no_backup", "bakup is not there, or has nothing in it: check the name"),
        ("other", "no_backup", "other has no manifest.json, so it is no backup: check the name"),
        ("file", "no_backup", "file is a file: name the directory"),
        ("emptied", "backup_damaged", "emptied has lost its manifest.json: take this file from another copy"),
    ):
        place = str(tmp_path / name)
        ran = kledger(*(word.format(place) for word in command.split()))
        assert ran.exit_code == 1, ran.output
        assert told in ran.stderr
        assert f"({code})" in ran.stderr


@pytest.fixture
def whole(tmp_path: Path) -> Path:
    loop = LoopThread()
    loop.run(backed_up(history(25), tmp_path / "b"))
    loop.close()
    return tmp_path / "b"


def commands_on_data() -> list[tuple[str, ...]]:
    """Every command that takes the data directory of a node."""
    found: list[tuple[str, ...]] = []

    def look(command: Any, words: tuple[str, ...]) -> None:
        for name, below in getattr(command, "commands", {}).items():
            look(below, (*words, name))
        if any("--data" in option.opts for option in command.params):
            found.append(words)

    look(get_command(app), ())
    return found


NEEDED = {
    ("chain", "accept"): ("--reason", "it is right"),
    ("repair",): ("--from", "no-backup"),
    ("restore-backup",): ("no-backup",),
    ("token", "create"): ("--role", "operator", "--new"),
    ("token", "revoke"): ("t-1",),
    ("up",): ("--http", "127.0.0.1:0"),
}
MAKERS = {("up",), ("restore-backup",)}
"""The commands whose data directory may be yet to come."""


@pytest.mark.parametrize("words", commands_on_data(), ids=" ".join)
def test_a_backup_is_no_data_directory_for_any_command_and_is_left_as_it_is(
    words: tuple[str, ...], whole: Path
) -> None:
    before = {file: file.read_bytes() for file in whole.rglob("*") if file.is_file()}
    ran = subprocess.run(
        [sys.executable, "-m", "kledger", *words, *NEEDED.get(words, ()), "--data", str(whole)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ran.returncode in (1, 2)
    assert f"{whole} is a backup, and no data directory of a node" in ran.stderr
    assert f"kledger restore-backup {whole} --data DIR" in ran.stderr
    assert {file: file.read_bytes() for file in whole.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize("through_a_link", [False, True])
@pytest.mark.parametrize("words", [*sorted(MAKERS), ("token", "create")], ids=" ".join)
def test_no_data_directory_is_made_where_duckdb_could_write_no_view(
    words: tuple[str, ...], through_a_link: bool, tmp_path: Path
) -> None:
    named = folder = tmp_path / "why?"
    folder.mkdir()
    if through_a_link:
        named = tmp_path / "link"
        named.symlink_to(folder)
    ran = subprocess.run(
        [sys.executable, "-m", "kledger", *words, *NEEDED[words], "--data", str(named / "data")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert ran.returncode in (1, 2)
    assert "name a path without one" in " ".join(ran.stderr.split())
    assert "Traceback" not in ran.stderr
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("words", [words for words in commands_on_data() if words not in MAKERS], ids=" ".join)
def test_a_mistyped_data_directory_is_said_and_none_is_made(words: tuple[str, ...], tmp_path: Path) -> None:
    needed = [word for word in NEEDED.get(words, ()) if word != "--new"]
    ran = subprocess.run(
        [sys.executable, "-m", "kledger", *words, *needed, "--data", "typo"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert ran.returncode in (1, 2), ran.stdout
    assert "typo" in ran.stderr
    assert list(tmp_path.iterdir()) == []


def test_backup_sends_an_absolute_directory_and_says_what_was_added(
    node: ScriptedNode, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    runs(node, "backup", BACKED_UP)
    ran = kledger("backup", "kept")
    assert (ran.exit_code, node.asked[0].body) == (0, {"into": str(tmp_path / "kept")})
    for part in ("added 34 events in 1 file,", "position 1,234 in 3 files", "signed up to position 1,230", "ab" * 32):
        assert part in said(ran)
    runs(node, "backup", BACKED_UP)
    assert json.loads(kledger("backup", "kept", "--json").stdout) == BACKED_UP


@pytest.mark.parametrize(
    ("columns", "line"), [(2, "columns of 2 files"), (0, "columns none yet: the node's archive has none"), (None, None)]
)
def test_a_backup_says_of_its_columns_whether_it_has_any_where_they_were_asked_for(
    columns: int | None, line: str | None, node: ScriptedNode, tmp_path: Path
) -> None:
    runs(node, "backup", {**BACKED_UP, "columns": columns})
    told = said(kledger("backup", str(tmp_path / "kept")))
    assert line in told if line else "columns" not in told


def test_a_check_with_another_key_says_whose_key_is_wanted(whole: Path) -> None:
    ran = kledger("backup", "--check", str(whole), "--key", base64.b64encode(bytes(32)).decode())
    assert ran.exit_code == 1
    assert "leave --key out" in ran.stderr, "one that nobody signed"


def test_a_check_exits_with_one_when_a_file_is_damaged_and_names_it(whole: Path) -> None:
    ran = kledger("backup", "--check", str(whole))
    assert (ran.exit_code, "backup whole" in said(ran)) == (0, True)
    file = sorted((whole / "events").iterdir())[1]
    file.write_bytes(file.read_bytes()[:-1])
    ran = kledger("backup", "--check", str(whole))
    assert (ran.exit_code, "backup damaged" in said(ran), file.name in said(ran)) == (1, True, True)
    assert "signed not compared: the chain of a damaged backup cannot be" in said(ran), "whoever signed it or not"
    told = json.loads(kledger("backup", "--check", str(whole), "--json").stdout)
    assert len(told["problems"]) == 1
    (whole / "manifest.json").write_text("{}")
    ran = kledger("backup", "--check", str(whole))
    assert (ran.exit_code, "backup_damaged" in ran.stderr) == (1, True)


def test_restore_is_about_an_item_and_names_the_command_for_a_backup(node: ScriptedNode, whole: Path) -> None:
    saved = {"id": "k-1", "position": 7, "event_id": "e", "version": 1, "status": "active", "events": []}
    node.says("POST /api/knowledge/k-1/restore", saved)
    assert kledger("restore", "k-1").stdout.strip() == "restored k-1 at position 7"
    asked = len(node.asked)
    for arguments in (["--data", "x"], ["--nats=nats://x:1"], ["--data", "x", "--start-over"], ["--key", "k"]):
        ran = kledger("restore", str(whole), *arguments)
        assert (ran.exit_code, ran.stdout) == (2, ""), arguments
        assert "kledgerrestore-backup" in "".join(ran.stderr.split()), arguments
    assert len(node.asked) == asked


def test_a_backup_is_restored_into_one_place(whole: Path) -> None:
    for arguments in ([], ["--start-over"], ["--data", "x", "--nats", "nats://x:1"]):
        ran = kledger("restore-backup", str(whole), *arguments)
        assert (ran.exit_code, ran.stdout) == (2, ""), arguments


@pytest.mark.parametrize("inside", ["", "node", "events/node"])
def test_a_backup_is_not_restored_into_itself(whole: Path, inside: str) -> None:
    before = sorted(whole.rglob("*"))
    ran = kledger("restore-backup", str(whole), "--data", str(whole / inside))
    assert (ran.exit_code, "is in the backup" in ran.stderr) == (1, True)
    assert sorted(whole.rglob("*")) == before


def test_a_backup_is_restored_into_a_new_directory_once_and_proved(whole: Path, tmp_path: Path) -> None:
    ran = kledger("restore-backup", str(whole), "--data", str(tmp_path / "data"), "--json")
    assert ran.exit_code == 0, ran.stderr
    told = json.loads(ran.stdout)
    assert (told["position"], told["signed"]) == (25, None)
    assert told["views"] == {"folded": True}
    assert told["head"] == json.loads(kledger("backup", "--check", str(whole), "--json").stdout)["head"]
    ran = kledger("restore-backup", str(whole), "--data", str(tmp_path / "data"))
    assert (ran.exit_code, "restore_refused" in ran.stderr) == (1, True)
    ran = kledger("repair", "--from", str(whole), "--data", str(tmp_path / "data"))
    assert (ran.exit_code, "nothing to mend" in said(ran)) == (0, True)
    ran = kledger("repair", "--from", str(whole), "--data", str(tmp_path / "nowhere"))
    assert ran.exit_code == 2


def test_a_restore_says_that_no_tokens_came_back_where_the_directory_has_none(whole: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    ran = kledger("restore-backup", str(whole), "--data", str(data))
    assert (ran.exit_code, "a node on it asks for none" in said(ran)) == (0, True)
    create_token(data.with_name("other"), {}, "operator")
    ran = kledger("restore-backup", str(whole), "--data", str(data.with_name("other")))
    assert (ran.exit_code, "asks for none" in said(ran)) == (0, False)


@pytest.mark.parametrize("cut_at", ["ledger.backup.restoring.put_back", "projections.live.from_backup.make_live"])
def test_a_restore_that_was_cut_behind_its_stream_is_ended_by_the_next_and_not_once_its_node_has_started(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cut_at: str
) -> None:
    class Cut(BaseException):
        """The process is killed."""

    def cut(*_: object, **__: object) -> None:
        raise Cut

    data, others = tmp_path / "data", tmp_path / "others"
    assert kledger("restore-backup", str(whole), "--data", str(others)).exit_code == 0
    with monkeypatch.context() as patched:
        patched.setattr(cut_at, cut)
        with pytest.raises(Cut):
            kledger("restore-backup", str(whole), "--data", str(data))
    assert live_file(data / "views") is None
    ran = kledger("restore-backup", str(whole), "--data", str(data), "--json")
    told = json.loads(ran.stdout)
    assert (ran.exit_code, told["continued_from"], told["views"]) == (0, told["position"], {"folded": True}), ran.stderr
    assert live_file(data / "views") is not None
    for name in ("chain/leaves.bin", "chain/began.json"):
        assert (data / name).stat().st_size == (others / name).stat().st_size
    ran = kledger("restore-backup", str(whole), "--data", str(data))
    assert (ran.exit_code, "start the node on it" in " ".join(ran.stderr.split())) == (1, True), ran.stderr


async def test_a_node_that_is_restored_asks_for_tokens_where_the_backed_up_one_did(tmp_path: Path) -> None:
    events, data = ListedLedger(history(25)), tmp_path / "data"
    for asks, at in ((True, "first"), (None, "first"), (False, "second"), (None, "third")):
        await back_up(events, tmp_path / at, tokens=asks)
    assert [load(tmp_path / at).tokens for at in ("first", "second", "third")] == [True, False, False]
    await back_up(events, tmp_path / "second", tokens=True)  # it has no new event
    assert load(tmp_path / "second").tokens
    ran = await asyncio.to_thread(kledger, "restore-backup", str(tmp_path / "first"), "--data", str(data), "--json")
    assert (ran.exit_code, json.loads(ran.stdout)["asks_for_tokens"]) == (0, True), ran.stderr
    book = TokenBook(tokens_file(data))
    assert (book.required, book.known) == (True, 0)
    with pytest.raises(Unauthenticated, match="kledger token create"):
        book.principal_of([])
    assert tokens_file(data).stat().st_mode & 0o777 == 0o600
    _, token = create_token(data, {}, "operator")
    assert book.principal_of([f"Bearer {token}".encode()]) is not None


def test_a_restore_says_that_tokens_are_asked_for_and_keeps_those_that_were_put_there(tmp_path: Path) -> None:
    loop = LoopThread()
    loop.run(back_up(ListedLedger(history(25)), tmp_path / "b", tokens=True))
    loop.close()
    ran = kledger("restore-backup", str(tmp_path / "b"), "--data", str(tmp_path / "data"))
    assert (ran.exit_code, "asks for them, as the backed-up one did, and has none" in said(ran)) == (0, True)
    record, _ = create_token(tmp_path / "other", {}, "operator")
    ran = kledger("restore-backup", str(tmp_path / "b"), "--data", str(tmp_path / "other"))
    assert (ran.exit_code, "are in no backup" in said(ran)) == (0, False)
    assert [each.id for each in read_records(tokens_file(tmp_path / "other"))] == [record.id]


async def test_only_the_operator_backs_a_node_up(tmp_path: Path) -> None:
    async with live_desk() as desk:
        with pytest.raises(NotOwner):
            await admin.start(desk, Caller(user="eve"), "backup", into=str(tmp_path))


def test_a_node_on_a_restored_log_serves_the_same_views(tmp_path: Path) -> None:
    with running(tmp_path / "data") as node, node.client() as ledger:
        ledger.save_many(items(1_120))
        scribe = ledger.acting_as(user="王芳")
        scribe.save("备份", "每天晚上备份。", ["plan"], id="备份", scopes=["public"])
        scribe.retire("备份")
        caught_up(ledger)
        backup = result_of(ledger, "backup", into=tmp_path / "b")
        assert load(tmp_path / "b").tokens is False
        digest = result_of(ledger, "verify")["live"]["digest"]
        assert (backup["position"], backup["signed"]) == (1_122, 1_122)
    (tmp_path / "new" / "keys").mkdir(parents=True, mode=0o700)
    shutil.copy(tmp_path / "data" / "keys" / "master.key", tmp_path / "new" / "keys")
    ran = CliRunner().invoke(app, ["restore-backup", str(tmp_path / "b"), "--data", str(tmp_path / "new"), "--json"])
    assert ran.exit_code == 0, ran.stderr
    proof = json.loads(ran.stdout)
    assert (proof["head"], proof["root"], proof["signed"]["position"]) == (backup["head"], backup["root"], 1_122)
    assert proof["archived"] == 1
    assert proof["keys"] == 2  # of 王芳, and the mark of the master key, which is in no backup
    assert proof["views"] == {"folded": True}
    view = tmp_path / "new" / "views" / "view-000001.duckdb"
    before = view.stat().st_ino
    with running(tmp_path / "new") as node, node.client() as ledger:
        assert view.stat().st_ino == before, "the node goes on with it"
        caught_up(ledger)
        status = ledger.status()
        assert status["archive"] is not None
        assert (status["archive"]["position"], status["archive"]["damaged"]) == (1_122, [])
        assert status["chain"]["certified"] is not None
        assert status["chain"]["certified"]["position"] >= 1_122
        verified = result_of(ledger, "verify")
        assert (verified["equal"], verified["live"]["digest"]) == (True, digest)
        ledger.save("Go on", "after the restore", ["tool"], scopes=["public"])
        again = result_of(ledger, "backup", into=tmp_path / "b")
        assert (again["added"], again["position"]) == (1, 1_123)

"""What a job of a node found not intact stays in its health, over a restart, until it is mended."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest

from kledger import LedgerClient
from kledger.contract.errors import LedgerError
from projections.live.files import live_file
from tests.journeys.running_node import ENVIRONMENT, caught_up, items, result_of, running, until
from tests.processes import started

COUNT = 60


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the data of a stopped node, `data`, and a backup of all that it has, `backup`."""
    folder = tmp_path_factory.mktemp("found")
    with running(folder / "data") as node, node.client() as ledger:
        ledger.save_many(items(COUNT))
        caught_up(ledger)
        result_of(ledger, "backup", into=folder / "backup")
    return folder


@pytest.fixture
def data(stopped: Path, tmp_path: Path) -> Path:
    shutil.copytree(stopped / "data", tmp_path / "data")
    return tmp_path / "data"


def change_an_event(data: Path) -> None:
    """Change a byte of an event in the broker's files, which the broker then does not deliver."""
    (messages,) = (file for file in data.rglob("*.blk") if "LEDGER/msgs" in file.as_posix())
    content = messages.read_bytes()
    at = content.index(b"part-00017") + len(b"part-000")
    messages.write_bytes(content[:at] + b"9" + content[at + 1 :])


def reasons(ledger: LedgerClient, about: str) -> list[str]:
    """What the health says that begins so; the node answers and is asked all the same."""
    told = ledger.status()
    assert told["healthy"] == (not told["reasons"])
    return [reason for reason in told["reasons"] if reason.startswith(about)]


def test_a_log_that_an_audit_found_damaged_is_told_until_it_is_repaired(data: Path, stopped: Path) -> None:
    change_an_event(data)
    with running(data) as node, node.client() as ledger:
        assert reasons(ledger, "") == [], "no part of the node has read the event again"
        assert not result_of(ledger, "audit")["intact"]
        (first,) = reasons(ledger, "audit found")
        assert "position 18 is missing" in first
        assert "kledger repair --from BACKUP" in first
        assert ledger.health()["status"] == "unhealthy"
    with running(data) as node, node.client() as ledger:
        assert reasons(ledger, "audit found") == [first], "a restart mends nothing"
        with pytest.raises(LedgerError) as failed:
            result_of(ledger, "rebuild", from_log=False)
        assert failed.value.code == "log_gap"
        (second,) = reasons(ledger, "rebuild found")
        assert "position 18 is missing" in second
    words = ("repair", "--from", str(stopped / "backup"), "--data", str(data), "--into", str(data.parent / "whole"))
    ran = started.kledger(*words, environment=ENVIRONMENT)
    assert ran.returncode == 0, ran.stderr
    with running(data) as node, node.client() as ledger:
        assert caught_up(ledger)["reasons"] == []
        assert result_of(ledger, "audit")["intact"]


def test_a_log_that_is_put_right_by_hand_is_told_until_an_audit_finds_it_intact(data: Path, stopped: Path) -> None:
    change_an_event(data)
    with running(data) as node, node.client() as ledger, pytest.raises(LedgerError) as failed:
        result_of(ledger, "backup", into=data.parent / "other")
    assert failed.value.code == "log_gap"
    shutil.rmtree(data / "broker")
    shutil.copytree(stopped / "data" / "broker", data / "broker")
    with running(data) as node, node.client() as ledger:
        assert len(reasons(ledger, "backup found")) == 1
        assert result_of(ledger, "audit")["intact"]
        assert reasons(ledger, "") == []


def test_views_that_differ_from_the_log_are_told_until_a_rebuild(data: Path) -> None:
    file = live_file(data / "views")
    assert file is not None
    with duckdb.connect(str(file)) as view:
        view.execute("UPDATE knowledge_versions SET content = 'another' WHERE id = 'part-00007'")
    with running(data) as node, node.client() as ledger:
        assert not result_of(ledger, "verify")["equal"]
        (first,) = reasons(ledger, "verify found")
        assert "the view knowledge_versions" in first
        assert "kledger rebuild" in first
    with running(data) as node, node.client() as ledger:
        assert reasons(ledger, "verify found") == [first], "a restart mends nothing"
        assert result_of(ledger, "rebuild")["swapped"]
        assert reasons(ledger, "verify found") == []
        assert result_of(ledger, "verify")["equal"]


def test_a_damaged_backup_is_told_until_there_is_a_whole_one(data: Path, stopped: Path) -> None:
    shutil.copytree(stopped / "backup", data.parent / "backup")
    next((data.parent / "backup" / "events").iterdir()).unlink()
    with running(data) as node, node.client() as ledger:
        with pytest.raises(LedgerError) as failed:
            result_of(ledger, "backup", into=data.parent / "backup")
        assert failed.value.code == "backup_damaged"
        (only,) = reasons(ledger, "backup found")
        assert ".parquet is missing" in only
        assert str(data.parent) not in only, "the health is for everybody who reaches the node"
        result_of(ledger, "backup", into=data.parent / "another")
        until(lambda: reasons(ledger, "") == [], "the node is well")


def test_a_vault_that_has_lost_records_is_told_until_they_are_brought_back(data: Path) -> None:
    backup = data.parent / "keys-and-all"
    with running(data) as node, node.client() as ledger:
        kept = ledger.acting_as(user="mei").remember("Mei keeps bees", "semantic")["id"]
        caught_up(ledger)
        result_of(ledger, "backup", into=backup)
    for block in data.glob("broker/**/KV_KLEDGER_KEYS/msgs/*"):
        block.unlink()
    with running(data) as node, node.client() as ledger:
        (first,) = reasons(ledger, "start found")
        assert "the vault has lost 1 of its records" in first, "what the master key is known by is made anew"
        assert "kledger repair --from BACKUP" in first
        assert ledger.health()["status"] == "unhealthy"
        without = data.parent / "without-keys"
        result_of(ledger, "backup", into=without)
        assert reasons(ledger, "start found") == [first], "a backup that has nothing to compare with mends nothing"
        ledger.acting_as(user="ann").remember("Ann keeps a dog", "semantic")
        later = ledger.acting_as(user="mei").remember("Mei keeps cats", "semantic")["id"]  # under another key
    ran = started.kledger("repair", "--from", str(without), "--data", str(data), environment=ENVIRONMENT)
    assert ran.returncode == 1, "it brings nothing back"
    assert "1 record of the vault" in " ".join(ran.stdout.split())
    for _ in range(2):
        with running(data) as node, node.client() as ledger:
            (again,) = reasons(ledger, "start found")
            assert "lost 1 of its records" in again, "that the vault has grown since makes up for nothing"
    ran = started.kledger("repair", "--from", str(backup), "--data", str(data), environment=ENVIRONMENT)
    assert ran.returncode == 0, ran.stderr
    with running(data) as node, node.client() as ledger:
        assert caught_up(ledger)["reasons"] == []
        assert result_of(ledger, "rebuild")["swapped"]
        for one, says in ((kept, "Mei keeps bees"), (later, "Mei keeps cats")):
            assert ledger.acting_as(user="mei").get(one)["content"] == says
        result_of(ledger, "backup", into=backup)
        result_of(ledger, "forget", subject="user:mei")
        assert ledger.sql("SELECT count(*) FROM refused_events")["rows"] == [[0]], "both are erased, and none is forged"
        assert ledger.sql("SELECT count(*) FROM knowledge WHERE content LIKE 'Mei keeps%'")["rows"] == [[0]]

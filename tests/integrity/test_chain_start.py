"""A chain that begins anew beneath a log that is not empty: said loudly, until somebody answers for it."""

from __future__ import annotations

import shutil
from pathlib import Path

import httpx
import pytest

from kledger import LedgerClient
from kledger.contract.errors import ChainContradicted
from ledger.integrity.chain_start import accept, begin, beginning, note_signed
from ledger.integrity.notary_start import NotaryFiles
from tests.journeys.running_node import caught_up, result_of, running, until
from tests.patience import PATIENCE
from tests.processes import started


@pytest.fixture
def files(tmp_path: Path) -> NotaryFiles:
    return NotaryFiles.of(tmp_path)


def test_a_chain_that_begins_with_its_log_is_not_doubtful(files: NotaryFiles) -> None:
    found = begin(files, head=0, restored_to=0)
    assert (found.position, found.doubtful) == (0, False)


def test_a_node_that_was_killed_before_its_first_signature_raises_no_alarm(files: NotaryFiles) -> None:
    begin(files, head=0, restored_to=0)
    assert not begin(files, head=40, restored_to=0).doubtful


def test_a_chain_whose_checkpoints_are_gone_is_doubtful(files: NotaryFiles) -> None:
    begin(files, head=0, restored_to=0)
    note_signed(files)
    found = begin(files, head=40, restored_to=0)
    assert (found.position, found.doubtful) == (40, True)
    assert begin(files, head=50, restored_to=0) == found, "a restart does not end the doubt"


def test_a_node_on_a_log_of_others_is_doubtful_until_it_is_accepted(files: NotaryFiles) -> None:
    assert begin(files, head=7, restored_to=0).doubtful
    assert accept(files, "the log of the first node").accepted == "the log of the first node"
    assert not begin(files, head=9, restored_to=0).doubtful


def test_it_may_be_accepted_before_the_first_start(files: NotaryFiles) -> None:
    accept(files, "a second node")
    found = begin(files, head=7, restored_to=0)
    assert (found.position, found.doubtful) == (7, False)
    note_signed(files)
    (files.directory / "began.json").unlink()
    assert begin(files, head=7, restored_to=0).doubtful


def test_a_log_that_came_from_a_backup_was_compared_and_is_not_doubtful(files: NotaryFiles) -> None:
    found = begin(files, head=40, restored_to=40)
    assert (found.position, found.doubtful) == (40, False)
    assert "backup" in (found.accepted or "")


def test_events_that_came_after_the_restore_are_doubtful_again(files: NotaryFiles) -> None:
    assert begin(files, head=41, restored_to=40).doubtful


def test_a_chain_of_an_earlier_version_goes_on_without_a_word(files: NotaryFiles) -> None:
    files.directory.mkdir()
    files.checkpoints.write_bytes(b"{}\n")  # what is wrong with it is the notary's to say
    assert not begin(files, head=40, restored_to=0).doubtful


def test_a_note_that_cannot_be_read_is_named(files: NotaryFiles) -> None:
    begin(files, head=0, restored_to=0)
    (files.directory / "began.json").write_text("[")
    with pytest.raises(ChainContradicted, match=r"began\.json"):
        beginning(files)


@pytest.mark.parametrize(
    "gone", [("chain",), ("chain", "keys/signing.pem", "keys/public"), ("chain/checkpoints.jsonl",)], ids=str
)
def test_a_node_whose_integrity_files_were_removed_says_so_in_log_and_health_and_audit(
    tmp_path: Path, gone: tuple[str, ...]
) -> None:
    data = tmp_path / "data"
    with running(data, "--quack", "off") as node, node.client() as ledger:
        ledger.acting_as(user="bob").save("Deploy", "Deploy on Tuesday.", ["strategy"])
        assert caught_up(ledger)["chain"]["began"]["position"] == 0
    copy = tmp_path / "copied.jsonl"
    shutil.copy(data / "chain" / "checkpoints.jsonl", copy)
    for name in gone:
        remove(data / name)
    with running(data, "--quack", "off") as node, node.client() as ledger:
        status = ledger.status()
        assert any("the chain begins anew" in reason for reason in status["reasons"])
        assert not status["healthy"]
        assert httpx.get(f"{node.url}/health/ready", timeout=PATIENCE).json()["status"] == "degraded"
        assert "the chain begins anew" in node.said()
        found = result_of(ledger, "audit")
        assert "nobody accepted that" in found["unseen"][0]
        accepted = kledger("chain", "accept", "--data", str(data), "--reason", "compared with the copy")
        assert "compared with the copy" in accepted
        until(lambda: healthy(ledger), "the doubt is over")
        assert "compared with the copy" in result_of(ledger, "audit")["unseen"][0]
    with running(data, "--quack", "off") as node, node.client() as ledger:
        caught_up(ledger)


def healthy(ledger: LedgerClient) -> bool:
    return bool(ledger.status()["healthy"])


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def kledger(*words: str) -> str:
    ran = started.kledger(*words)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout

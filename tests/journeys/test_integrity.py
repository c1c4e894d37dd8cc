"""What an auditor does with a node: audits it, takes proofs home, compares its rebuilds, and catches it lying."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from kledger import LedgerClient
from kledger.contract.errors import NotCertified, UnknownKnowledge
from ledger.integrity.chain_start import begin
from producers.cli.main import app
from tests.integrity.logs import signed_log
from tests.journeys.running_node import RunningNode, caught_up, items, result_of, running, until

COUNT = 120


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that holds the data of a stopped node, `data`, its data before the last events, `older`, and more."""
    folder = tmp_path_factory.mktemp("integrity")
    data = folder / "data"
    sent = folder / "sent.jsonl"
    with running(data) as node, node.client() as ledger:
        ledger.save_many(items(COUNT))
        caught_up(ledger)
        result_of(ledger, "backup", into=folder / "backup")
        node.stop()
    shutil.copytree(data, folder / "older")
    sent.mkdir()  # so that nobody gets the first checkpoints
    with running(data, "--checkpoint-hook", f"tee -a '{sent}'") as node, node.client() as ledger:
        keeper = ledger.acting_as(agent="storekeeper")
        keeper.revise("part-00003", content="Moved.", expected_version=1)
        until(lambda: "checkpoints are not sent" in str(ledger.status()["warnings"]), "the status says so")
        assert ledger.status()["healthy"]
        sent.rmdir()
        keeper.rate("part-00003", "helpful", reason="found it")
        caught_up(ledger)
        told = prove_and_rebuild(ledger, folder)
        # Killed in the middle of its work: what was signed is taken up again.
        ledger.save_many(items(30, "late"))
        node.kill_everything()
        folder.joinpath("told.json").write_text(json.dumps(told))
    return folder


def prove_and_rebuild(ledger: LedgerClient, folder: Path) -> dict[str, Any]:
    """A proof in a file, and what three jobs came to."""
    (folder / "proof.json").write_text(json.dumps(ledger.prove("part-00003")))
    return {
        "rebuild": result_of(ledger, "rebuild"),
        "one": result_of(ledger, "replay", to=50, into=folder / "one.duckdb"),
        "other": result_of(ledger, "replay", to=50, into=folder / "other.duckdb"),
        "audit": result_of(ledger, "audit"),
        "status": ledger.status()["chain"],
    }


def kledger(*arguments: str | Path) -> tuple[int, dict[str, Any]]:
    """What a command answers with --json, and its exit code."""
    ran = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert not [level for level in ("[info", "[debug") if level in ran.stderr], "the lines of a log are no answer"
    return ran.exit_code, json.loads(ran.stdout)


def test_a_proof_is_checked_with_the_public_key_and_no_node(stopped: Path) -> None:
    code, keys = kledger("key", "show", "--data", stopped / "data")
    assert code == 0
    pem = stopped / "node.pem"
    pem.write_text(keys["keys"][keys["current"]])
    code, told = kledger("check-proof", stopped / "proof.json", "--key", pem)
    assert (code, told["holds"], told["key"]["given"]) == (0, True, True)
    assert [event["type"] for event in told["events"]] == ["knowledge.saved", "knowledge.revised", "knowledge.rated"]
    forged = json.loads((stopped / "proof.json").read_text())
    forged["events"][1]["stored_ns"] += 1
    (stopped / "forged.json").write_text(json.dumps(forged))
    code, told = kledger("check-proof", stopped / "forged.json", "--key", pem)
    assert (code, [bool(event["fault"]) for event in told["events"]]) == (1, [False, True, False])
    (stopped / "no proof.json").write_text("{")
    assert kledger("check-proof", stopped / "no proof.json")[0] == 2
    code, told = kledger("check-proof", stopped / "elsewhere.json")
    assert (code, told["error"]["message"]) == (
        2,
        f"{stopped / 'elsewhere.json'} cannot be read: No such file or directory",
    )


def test_an_audit_finds_a_changed_byte_and_brings_the_event_back_from_a_backup(stopped: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(stopped / "older", data)
    (messages,) = (file for file in data.rglob("*.blk") if "LEDGER/msgs" in file.as_posix())
    content = messages.read_bytes()
    at = content.index(b"part-00017") + len(b"part-000")
    messages.write_bytes(content[:at] + b"9" + content[at + 1 :])
    assert kledger("audit", "--repair-from", stopped / "backup")[0] == 2  # a running node is not repaired
    code, told = kledger("audit", "--data", data, "--repair-from", stopped / "backup")
    assert (code, told["intact"], told["before"]["intact"]) == (0, True, False)
    assert kledger("audit", "--data", data)[0] == 0


def test_rebuilds_and_replays_leave_certificates_that_can_be_compared(stopped: Path) -> None:
    told = json.loads((stopped / "told.json").read_text())
    assert Path(told["rebuild"]["certificate"]).parent == stopped / "data" / "certificates"
    files = [told[name]["certificate"] for name in ("one", "other", "rebuild")]
    code, compared = kledger("verify", "--certificates", files[0], files[1])
    assert (code, compared["equal"], compared["positions"]["a"]) == (0, True, 50)
    code, compared = kledger("verify", "--certificates", files[0], files[2])
    assert (code, compared["same_position"]) == (1, False)
    changed = json.loads(Path(files[0]).read_text())
    changed["views"]["knowledge_state"]["digest"] = "00"
    (stopped / "changed.json").write_text(json.dumps(changed))
    code, compared = kledger("verify", "--certificates", files[0], stopped / "changed.json")
    assert (code, [view["view"] for view in compared["views"] if not view["equal"]]) == (1, ["knowledge_state"])
    assert compared["faults"]


def test_the_node_audits_itself_and_tells_how_far_it_signed(stopped: Path) -> None:
    told = json.loads((stopped / "told.json").read_text())
    assert told["audit"]["intact"]
    assert told["audit"]["certified"] == told["audit"]["head"]
    assert told["status"]["certified"]["position"] == told["status"]["position"]
    assert told["status"]["trouble"] is None


def test_an_auditor_trusts_a_key_and_copied_checkpoints_and_no_running_code(stopped: Path, tmp_path: Path) -> None:
    shutil.copytree(stopped / "data", tmp_path / "data")
    _, keys = kledger("key", "show", "--data", tmp_path / "data")
    (tmp_path / "node.pem").write_text(keys["keys"][keys["current"]])
    kledger("key", "rotate", "--data", tmp_path / "data")
    known = ("--key", tmp_path / "node.pem", "--checkpoints", stopped / "sent.jsonl")
    code, told = kledger("audit", "--data", tmp_path / "data", *known)
    assert (code, told["intact"]) == (0, True)
    assert told["head"] > told["certified"]  # killed before it could sign the last events
    assert "unsigned" in told["unseen"][0]

    older = tmp_path / "older"
    shutil.copytree(stopped / "older", older)
    assert kledger("audit", "--data", older)[1]["intact"]  # by itself it knows no better
    code, told = kledger("audit", "--data", older, *known)
    assert (code, told["intact"], told["intact_up_to"]) == (1, False, COUNT)
    assert {one["kind"] for one in told["findings"]} == {"leaves", "cut_off"}

    (block,) = older.rglob("LEDGER/msgs/*.blk")
    content = bytearray(block.read_bytes())
    content[len(content) // 2] ^= 1
    block.write_bytes(content)
    code, told = kledger("audit", "--data", older)
    assert (code, [one["kind"] for one in told["findings"]]) in ((1, ["missing"]), (1, ["cut_off"]))


@pytest.mark.parametrize("words", [("audit",), ("key", "show"), ("key", "rotate")])
def test_a_mistyped_data_directory_is_told_as_such(words: tuple[str, ...], tmp_path: Path) -> None:
    code, told = kledger(*words, "--data", tmp_path / "kleger")
    assert code != 0
    assert told["error"]["message"].startswith(f"there is no directory {tmp_path / 'kleger'}: name the node's data")
    assert not (tmp_path / "kleger").exists()


def test_an_audit_that_cannot_run_says_why(tmp_path: Path) -> None:
    code, told = kledger("audit", "--data", tmp_path)
    assert (code, told["error"]["code"]) == (2, "invalid_payload")
    assert told["error"]["message"].startswith(f"no data of a node is in {tmp_path}")
    (tmp_path / "chain").mkdir()
    code, told = kledger("audit", "--data", tmp_path)
    assert (code, told["error"]["code"]) == (2, "not_certified")
    (tmp_path / "chain").rmdir()
    code, told = kledger("audit", "--url", "http://127.0.0.1:9")
    assert (code, told["error"]["code"]) == (2, "node_unreachable")
    code, told = kledger("audit", "--key", tmp_path / "none.pem")
    assert (code, told["error"]["code"]) == (2, "invalid_payload")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("file", ["chain/checkpoints.jsonl", "chain/began.json", "keys/public/*.pem"])
def test_an_audit_that_cannot_read_what_was_signed_does_not_call_the_log_changed(file: str, tmp_path: Path) -> None:
    """As for an auditor who is not the node's user; a directory, as root may read every file."""
    _, files = signed_log(tmp_path, 3, 2)
    begin(files, 3, 0)
    (unread,) = tmp_path.glob(file)
    unread.unlink()
    unread.mkdir()
    code, told = kledger("audit", "--data", tmp_path)
    assert (code, told["error"]["code"]) == (2, "invalid_payload")
    assert str(unread) in told["error"]["message"]


def test_health_names_a_file_of_the_chain_and_not_where_the_node_keeps_it(tmp_path: Path) -> None:
    data, file = tmp_path / "data", "chain/checkpoints.jsonl"
    (data / "chain").mkdir(parents=True)
    (data / file).write_text("no checkpoint\n")
    with running(data, "--quack", "off") as node, node.client() as ledger:
        ledger.save("t", "c", ["tool"])
        until(lambda: "nothing is signed" in str(ledger.health()), "health says that nothing is signed")
        told = str(ledger.health())
    assert file in told
    assert str(tmp_path) not in told


def test_a_node_that_was_killed_signs_on_and_proves_what_came_before_and_after(stopped: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(stopped / "data", data)
    with running(data) as node, node.client() as ledger:
        caught_up(ledger)
        for item in ("part-00003", "late-00007"):
            (tmp_path / "proof.json").write_text(json.dumps(ledger.prove(item)))
            assert kledger("check-proof", tmp_path / "proof.json")[1]["holds"]
        with pytest.raises(UnknownKnowledge):
            ledger.prove("nothing")
        certified = ledger.status()["chain"]["certified"]
        assert certified is not None
        assert certified["position"] >= COUNT + 32
        assert result_of(ledger, "audit")["intact"]


def test_a_node_whose_log_was_exchanged_for_an_older_one_signs_nothing_and_says_so(
    stopped: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    shutil.copytree(stopped / "data", data)
    shutil.rmtree(data / "broker")
    shutil.copytree(stopped / "older" / "broker", data / "broker")
    shutil.rmtree(data / "views")  # a view of the old log, which would stop the fold as well
    before = (data / "chain" / "checkpoints.jsonl").read_bytes()
    with running(data) as node, node.client() as ledger:
        until(lambda: ledger.status()["chain"]["trouble"], "the notary notices")
        told = ledger.status()
        assert not told["healthy"]
        assert any("events were cut off" in reason for reason in told["reasons"])
        assert ledger.health()["status"] == "unhealthy"
        assert result_of(ledger, "audit")["findings"][0]["kind"] == "cut_off"
        with pytest.raises(NotCertified):
            prove_something_new(ledger)
    assert (data / "chain" / "checkpoints.jsonl").read_bytes() == before


def prove_something_new(ledger: LedgerClient) -> None:
    """Save so much that the log is longer than it was, and ask for a proof of the last."""
    ledger.save_many(items(200, "new"))
    ledger.prove("new-00199")


def test_a_node_does_not_start_with_a_key_that_others_may_read(stopped: Path, tmp_path: Path) -> None:
    data = tmp_path / "data"
    shutil.copytree(stopped / "older", data)
    (data / "keys" / "signing.pem").chmod(0o644)
    with pytest.raises(AssertionError, match="unsafe_key_file"), running(data) as node:
        assert isinstance(node, RunningNode)

"""A backup of the version before this one, whose files were all read from the log, is restored and goes on."""

from __future__ import annotations

import base64
import json
import shutil
from pathlib import Path

from typer.testing import CliRunner

from ledger.backup.checking import check_backup
from producers.cli.main import app
from tests.journeys.running_node import caught_up, result_of, running

EARLIER = Path(__file__).parent / "earlier" / "format-1"
MASTER_KEY = {"KLEDGER_MASTER_KEY": base64.b64encode(b"the master key of an old backup!").decode()}


def test_it_is_whole() -> None:
    checked = check_backup(EARLIER)
    assert (checked.problems, checked.position, checked.segments) == ([], 23, 2)
    assert checked.signed is not None


def test_it_is_restored_with_what_persons_said_and_goes_on(tmp_path: Path) -> None:
    directory, data = tmp_path / "b", tmp_path / "data"
    shutil.copytree(EARLIER, directory)
    before = {path.name: path.read_bytes() for path in (directory / "events").iterdir()}
    ran = CliRunner().invoke(app, ["restore-backup", str(directory), "--data", str(data), "--json"])
    assert ran.exit_code == 0, ran.stderr
    proof = json.loads(ran.stdout)
    assert (proof["position"], proof["keys"], proof["session_records"], proof["archived"]) == (23, 2, 2, 0)
    with running(data, env=MASTER_KEY) as node, node.client() as ledger:
        caught_up(ledger)
        assert result_of(ledger, "verify")["equal"]
        mei = ledger.acting_as(user="mei")
        assert mei.get("kept")["content"] == "每天晚上备份。"
        assert mei.session("s1").messages()["messages"][0]["content"] == "Where is the backup?"
        mei.save("Check", "Read all of it.", ["plan"], id="checked", scopes=["public"])
        caught_up(ledger)
        done = result_of(ledger, "backup", into=directory)
    assert (done["added"] > 0, done["files"]) == (True, 1)
    assert {path.name: path.read_bytes() for path in (directory / "events").iterdir() if path.name in before} == before
    assert check_backup(directory).problems == []

"""A node archives what it signed, folds from there, names what is damaged there, and makes it anew."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from kledger import LedgerClient
from kledger.contract.errors import InvalidPayload
from tests.files import entries
from tests.journeys.running_node import ENVIRONMENT, RunningNode, caught_up, items, result_of, running, until, up
from tests.processes import started
from tests.processes.sooner import SIGNED_AND_ARCHIVED, sooner

SEGMENT = 20
SETTING = {"KLEDGER_ARCHIVE_EVENTS": str(SEGMENT), **sooner(SIGNED_AND_ARCHIVED)}
PERSON = "user:ada"


def archived(ledger: LedgerClient) -> dict[str, Any]:
    """What the status says of the archive, once every whole segment is there."""

    def state() -> dict[str, Any]:
        status = ledger.status()
        return {**(status["archive"] or {}), "due": status["stream"]["head"] // SEGMENT * SEGMENT}

    until(lambda: state()["position"] >= state()["due"], "all of it is archived")
    return state()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[RunningNode]:
    with running(tmp_path / "data", env=SETTING) as node:
        with node.client() as ledger:
            assert ledger.save_many(items(50))["saved"] == 50
            adas = ledger.acting_as(user=PERSON.removeprefix("user:"))
            for number in range(15):
                adas.save(f"what ada does {number}", "she counts the crates", ["tool"], id=f"ada-{number}")
            caught_up(ledger)
        yield node


def test_a_rebuild_is_the_same_from_the_archive_and_from_the_log_and_survives_damage_and_a_forgetting(
    node: RunningNode,
) -> None:
    with node.client() as ledger:
        state = archived(ledger)
        assert (state["damaged"], state["trouble"]) == ([], None)
        assert state["bytes"] > 0
        assert [f"{path} {status.st_mode:o}" for path, status in entries(node.data) if status.st_mode & 0o077] == []

        verified = result_of(ledger, "verify")
        assert (verified["equal"], verified["archive"]) == (True, {"events": state["due"], "damaged": []})
        read_alone = result_of(ledger, "verify", from_log=True)
        assert (read_alone["equal"], read_alone["archive"]) == (True, {})
        assert read_alone["rebuilt"]["digest"] == verified["rebuilt"]["digest"]

        file = sorted((node.data / "archive" / "events").glob("*/events.parquet"))[1]
        whole = file.read_bytes()
        file.write_bytes(bytes([*whole[:99], whole[99] ^ 1, *whole[100:]]))
        rebuilt = result_of(ledger, "rebuild")
        name = f"events/{file.parent.name}/events.parquet"
        assert [each["file"] for each in rebuilt["archive"]["damaged"]] == [name]
        assert (rebuilt["equal"], rebuilt["swapped"]) == (True, True)
        until(lambda: file.is_file() and file.read_bytes() == whole, "the damaged segment is made anew")
        assert [each["file"] for each in archived(ledger)["damaged"]] == [name]
        assert (
            f"made anew: {name}"
            in started.kledger("status", environment={**ENVIRONMENT, "KLEDGER_URL": node.url}).stdout
        )

        receipt = result_of(ledger, "forget", subject=PERSON)["receipt"]
        assert receipt["archive"] == "sealed, as the log is"
        again = result_of(ledger, "verify")
        assert (again["equal"], again["archive"]["damaged"]) == (True, [])


def test_a_node_that_lost_its_views_folds_them_from_the_archive(node: RunningNode) -> None:
    with node.client() as ledger:
        due = archived(ledger)["due"]
        before = result_of(ledger, "verify")["rebuilt"]["digest"]
    assert node.stop() == 0
    shutil.rmtree(node.data / "views")
    with running(node.data, env=SETTING) as later, later.client() as ledger:
        verified = result_of(ledger, "verify")
        assert (verified["equal"], verified["rebuilt"]["digest"]) == (True, before)
        assert f'"read": {due}' in later.log.read_text()


def test_what_is_removed_of_the_archive_is_named_by_the_node_running_or_stopped_and_made_anew(
    node: RunningNode,
) -> None:
    def known() -> set[str]:
        return {*orjson.loads((node.data / "chain" / "archived.json").read_bytes())}

    def there() -> set[str]:
        manifests = (node.data / "archive").glob("*/*/manifest.json")
        return {str(file.parent.relative_to(node.data / "archive")) for file in manifests}

    with node.client() as ledger:
        due = archived(ledger)["due"]
        until(lambda: len(there()) == 2 * due // SEGMENT and known() == there(), "the node knows what it archived")
        whole = there()
        shutil.rmtree(node.data / "archive" / "columns")
        until(lambda: there() == whole, "the columns are made anew")
        assert [each["file"] for each in archived(ledger)["damaged"]] == ["columns"]
        until(lambda: not ledger.status()["warnings"], "nothing is missing any more")
        verified = result_of(ledger, "verify")
        assert (verified["equal"], verified["archive"]) == (True, {"events": due, "damaged": []})
    assert node.stop() == 0
    shutil.rmtree(node.data / "archive")
    with running(node.data, env=SETTING) as later, later.client() as ledger:
        until(lambda: there() == whole, "all of it is made anew")
        assert [each["file"] for each in archived(ledger)["damaged"]] == ["events", "columns"]
        assert later.log.read_text().count("what was archived is gone, and is made anew") == 3


def test_a_node_without_an_archive_says_so_and_a_wrong_setting_is_named(tmp_path: Path) -> None:
    with running(tmp_path / "data", env={"KLEDGER_ARCHIVE_EVENTS": "0"}) as node, node.client() as ledger:
        ledger.save("fill the inkwell", "with ink", ["tool"])
        assert ledger.status()["archive"] is None
        assert result_of(ledger, "verify")["archive"] == {}
    ran = started.kledger(*up(tmp_path / "other"), environment={**ENVIRONMENT, "KLEDGER_ARCHIVE_EVENTS": "many"})
    assert ran.returncode == 1
    assert "KLEDGER_ARCHIVE_EVENTS=many is no setting" in ran.stderr
    assert InvalidPayload.code in ran.stderr

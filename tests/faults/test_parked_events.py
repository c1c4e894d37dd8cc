"""A node that meets an event which it cannot fold: the operator sees it, tries it again, lets it rest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kledger.contract.errors import IllegalState, NotOwner, UnfoldableEvent, UnknownReference
from tests.faults.poison import MARKER
from tests.journeys.running_node import (
    ROOT,
    RunningNode,
    assert_found,
    caught_up,
    items,
    result_of,
    running,
)
from tests.patience import PATIENCE
from tests.processes import started

INJECT = Path(__file__).parent / "inject"


@pytest.fixture(scope="module")
def poison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """While this file is there, folds fail on the marker."""
    file = tmp_path_factory.mktemp("poison") / "active"
    file.touch()
    return file


@pytest.fixture(scope="module")
def poisoned(tmp_path_factory: pytest.TempPathFactory, poison: Path) -> Iterator[RunningNode]:
    """A node whose folds fail so, with ten items before, two bad ones, and ten after them."""
    env = {"PYTHONPATH": str(INJECT), "FAULT_ROOT": str(ROOT), "FAULT_POISON": str(poison)}
    with running(tmp_path_factory.mktemp("poisoned") / "data", env=env) as node, node.client() as ledger:
        ledger.save_many(items(10))
        bad = [{**item, "id": f"bad-{n}", "content": MARKER} for n, item in enumerate(items(2, "bad"))]
        ledger.save_many(bad)
        ledger.save_many(items(10, "later"))
        caught_up(ledger)
        yield node


def kledger(node: RunningNode, *words: str) -> tuple[int, Any]:
    """Run the command against the node: its exit code and JSON document."""
    ran = started.kledger(*words, "--url", node.url, "--json")
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran.returncode, json.loads(ran.stdout)


def test_the_rest_goes_on_and_the_operator_is_told(poisoned: RunningNode) -> None:
    with poisoned.client() as ledger:
        assert_found(ledger, [0, 9])
        assert_found(ledger, [0, 9], "later")
        told = ledger.status()
        assert told["healthy"]
        assert told["warnings"] == ["2 parked events wait for you (at 11, 12): kledger refused list"]
        assert result_of(ledger, "verify")["equal"] is True
    code, listed = kledger(poisoned, "refused", "list", "--code", "unfoldable")
    assert code == 0
    assert [(one["position"], one["state"], one["tries"]) for one in listed["refused"]] == [
        (11, "parked", 3),
        (12, "parked", 3),
    ]
    assert all("ConversionException" in one["reason"] and MARKER in one["body"] for one in listed["refused"])


def test_a_person_is_forgotten_although_events_are_parked(poisoned: RunningNode) -> None:
    with poisoned.client() as ledger:
        saved = ledger.acting_as(user="ann").save("Ann's own", "ann-said-so", ["tool"], scopes=["user:ann"])
        caught_up(ledger)
        told = result_of(ledger, "forget", subject="user:ann")
        assert told["receipt"]["key"] == "destroyed"
        rows = ledger.sql(f"SELECT content FROM knowledge WHERE id = '{saved['id']}'")["rows"]
        assert rows == [["[erased]"]]
        assert result_of(ledger, "verify")["equal"] is True
    assert "an event is parked" in poisoned.said()


def test_who_is_not_the_operator_sees_and_decides_nothing(poisoned: RunningNode) -> None:
    with poisoned.client() as ledger:
        somebody = ledger.acting_as(agent="a")
        for ask in (somebody.refused, lambda: somebody.dismiss_parked(11), lambda: somebody.retry_parked(11)):
            with pytest.raises(NotOwner):
                ask()


def test_what_is_not_parked_can_neither_be_tried_again_nor_dismissed(poisoned: RunningNode) -> None:
    assert kledger(poisoned, "refused", "retry", "3") == (
        1,
        {
            "error": {
                "code": "unknown_reference",
                "message": "no event is parked at position 3: kledger refused list shows which are",
                "details": {},
            }
        },
    )
    with poisoned.client() as ledger, pytest.raises(UnknownReference):
        ledger.dismiss_parked(3)


def test_a_parked_event_is_tried_again_in_vain_then_in_earnest_and_another_is_dismissed(
    poisoned: RunningNode, poison: Path
) -> None:
    with poisoned.client() as ledger:
        before = ledger.sql("SELECT position, code, reason FROM refused_events ORDER BY 1")["rows"]
        with pytest.raises(UnfoldableEvent, match="position 11 "):
            ledger.wait_job(ledger.retry_parked(11)["id"], timeout=PATIENCE)
        assert ledger.sql("SELECT position, code, reason FROM refused_events ORDER BY 1")["rows"] == before

        poison.unlink()  # the cause is mended
        code, told = kledger(poisoned, "refused", "retry", "11")
        assert (code, told["retried"], told["swapped"]) == (0, 11, True)
        caught_up(ledger)
        assert ledger.get("bad-0")["position"] == 11
        assert "bad-0" in [item["id"] for item in ledger.search(MARKER, record=False)["results"]]
        assert ledger.status()["refused"] == 1
        assert result_of(ledger, "verify")["equal"] is True

        code, told = kledger(poisoned, "refused", "dismiss", "12")
        assert (code, told["state"]) == (0, "dismissed")
        with pytest.raises(IllegalState):
            ledger.dismiss_parked(12)
        assert ledger.status()["warnings"] == []
        assert [one["state"] for one in ledger.refused()["refused"]] == ["dismissed"]
        assert result_of(ledger, "rebuild")["equal"] is True

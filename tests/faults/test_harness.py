"""A short run of `make faults`: kills between two steps, by a seed; and that its checks can fail."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from projections.engine import batch
from tests.faults.harness.campaign import INJECT, Life, Tally, run
from tests.faults.harness.checks import broken_promises
from tests.faults.harness.points import campaign, every_point
from tests.journeys.running_node import ROOT

SEED = 7
POINTS = 6


@pytest.fixture(autouse=True)
def _folds_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """The harness poisons the folds of its own process: undone after the test."""
    monkeypatch.setattr(batch, "named", batch.named)  # type: ignore[attr-defined]  # it is imported there by name


def test_after_every_kill_nothing_is_lost_or_doubled_and_the_view_is_what_a_replay_gives(tmp_path: Path) -> None:
    tally = run(POINTS, SEED, tmp_path)
    assert [(o.point, o.broken) for o in tally.outcomes if o.broken or not o.reached] == [], f"seed {tally.seed}"
    assert len(tally.outcomes) == POINTS
    assert tally.vectors_compared == 1
    assert tally.repeated > 0


def test_the_checks_find_what_is_lost_counted_twice_or_unlike_its_replay(tmp_path: Path) -> None:
    life = Life(tmp_path, random.Random(SEED), Tally(SEED))
    try:
        life.work.begin()
        life.work.write(3)
        life.send_all()
        life.settle()
        with life.node.client() as client:
            assert broken_promises(client, life.node.access, life.work, 0) == []
            life.work.acknowledged["never"] = 10_000
            life.work.ratings["base-00003"] = 7
            found = broken_promises(client, life.node.access, life.work, 1)
    finally:
        life.end()
    starts = ("lost: never", "ratings", "1 events should be refused")
    assert [sum(start in promise for promise in found) for start in starts] == [1, 1, 1]


def test_a_campaign_takes_every_step_with_every_victim_before_any_comes_again() -> None:
    whole = every_point(random.Random(1))
    assert len(whole) > 90
    steps = {(point.name, point.victim) for point in whole}
    assert {(p.name, p.victim) for p in campaign(len(whole), random.Random(2))} == steps
    assert list(campaign(250, random.Random(3))) == list(campaign(250, random.Random(3)))


@pytest.mark.parametrize("module", ["producers.cli.main", "projections.archive.process", "projections.vectors.process"])
def test_every_point_of_a_process_is_around_something_that_is_there(module: str, tmp_path: Path) -> None:
    """Python starts without the points where putting one in place fails: nobody would be killed there."""
    environment = {**os.environ, "PYTHONPATH": str(INJECT), "FAULT_ROOT": str(ROOT), "FAULT_ARMED": str(tmp_path)}
    environment |= {"FAULT_DATA": str(tmp_path), "FAULT_SEED": "1"}
    started = subprocess.run(
        [sys.executable, "-c", "", module], env=environment, capture_output=True, text=True, check=True
    )
    assert "Error in sitecustomize" not in started.stderr

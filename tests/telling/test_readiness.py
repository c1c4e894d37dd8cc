"""Live, ready, degraded, not ready: each state with its reasons, and how a node comes from one to the other."""

from __future__ import annotations

from typing import Any

import pytest

from producers.node.readiness import LONGEST_LAG_SECONDS, MAY_LACK, Readiness
from producers.operations.ports import Health
from tests.doors.http_door import http_door


def status(
    position: int, head: int, *reasons: str, lag: float = 0.0, vectors: float = 0.0, answers: bool = True
) -> dict[str, Any]:
    """The status of a node whose broker answers, or not (then the head is not known)."""
    return {
        "healthy": not reasons,
        "reasons": list(reasons),
        "stream": {"head": head, "time": "2026-03-05T12:00:00+00:00" if answers and head else None},
        "views": [
            {"name": "duckdb", "position": position, "lag_seconds": lag},
            {"name": "vectors", "position": position, "lag_seconds": vectors},
        ],
    }


def test_a_new_node_on_an_empty_log_is_ready() -> None:
    assert Readiness().of(status(0, 0)).waits_for == []


def test_a_node_is_ready_once_it_has_what_the_log_held_at_its_start() -> None:
    readiness = Readiness()
    waits, then = readiness.of(status(0, 200_000)).waits_for
    assert "the view duckdb is at position 0 of the 200000" in waits
    assert "the view vectors is at position 0 of the 200000" in then
    assert readiness.of(status(150_000, 200_500)).waits_for
    # what came since is lag, and not a reason to wait
    assert readiness.of(status(200_000, 200_500, lag=0.2)).waits_for == []
    assert readiness.of(status(200_100, 300_000, lag=1.0)).waits_for == []


def test_a_view_far_behind_is_not_ready_again() -> None:
    readiness = Readiness()
    assert readiness.of(status(5, 5)).waits_for == []
    (waits,) = readiness.of(status(5, 6, "the view stands still", lag=LONGEST_LAG_SECONDS + 1)).waits_for
    assert "31.0 s behind" in waits
    assert readiness.of(status(6, 6)).waits_for == []


def test_without_its_broker_a_node_is_degraded_and_one_that_never_had_it_is_not_ready() -> None:
    readiness = Readiness()
    readiness.of(status(5, 5))
    without = readiness.of(status(5, 5, "the broker does not answer", answers=False))
    assert (without.healthy, without.waits_for, without.reasons) == (False, [], ["the broker does not answer"])
    never = Readiness().of(status(5, 5, "the broker does not answer", answers=False))
    assert "has not said how long the log is" in never.waits_for[0]


def test_vectors_that_stand_still_or_are_anothers_to_write_are_not_waited_for() -> None:
    behind = {**status(9_000, 9_000), "views": [{"name": "duckdb", "position": 9_000, "lag_seconds": 0.0}]}
    behind["views"].append({"name": "vectors", "position": 3_000, "lag_seconds": 1.0})
    readiness = Readiness()
    assert readiness.of(behind).waits_for == ["the view vectors is at position 3000 of the 9000 at the start"]
    assert readiness.of(behind, ["vectors"]).waits_for == []


def test_a_few_events_that_the_vectors_lack_are_waited_for_by_searches_alone() -> None:
    behind = status(9_000, 9_000)
    behind["views"][1]["position"] = 9_000 - MAY_LACK["vectors"]
    assert Readiness().of(behind).waits_for == []


def test_vectors_that_are_behind_degrade_and_do_not_take_the_node_away() -> None:
    readiness = Readiness()
    found = readiness.of(status(5, 5, "the view vectors is 1 events and 40 s behind", vectors=40.0))
    readiness.of(status(5, 5))
    assert found.healthy is False
    assert readiness.of(status(5, 5, "vectors", vectors=40.0)).waits_for == []
    assert found.lag_seconds == {"duckdb": 0.0, "vectors": 40.0}


@pytest.mark.parametrize(
    ("health", "code", "said", "old"),
    [
        (Health(True, []), 200, "ready", (200, "healthy")),
        (Health(False, ["the broker does not answer"]), 200, "degraded", (503, "unhealthy")),
        (Health(True, [], ["the view duckdb is at 0 of 9"]), 503, "not ready", (200, "healthy")),
        (Health(False, ["a gap"], ["behind"]), 503, "not ready", (503, "unhealthy")),
    ],
)
async def test_the_door_tells_each_state(health: Health, code: int, said: str, old: tuple[int, str]) -> None:
    async with http_door() as door:

        async def told() -> Health:
            return health

        door.desk.admin.health = told  # type: ignore[method-assign]
        answer = await door.get("/health/ready")
        assert (answer.status_code, answer.json()["status"]) == (code, said)
        assert answer.json()["reasons"] == [*health.waits_for, *health.reasons]
        before = await door.get("/health")
        assert (before.status_code, before.json()["status"]) == old
        assert (await door.get("/health/live")).json() == {"status": "live"}
        metrics = (await door.get("/metrics")).text
        assert f"kledger_ready {float(not health.waits_for)}" in metrics
        assert f"kledger_healthy {float(health.healthy)}" in metrics

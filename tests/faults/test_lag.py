"""The lag of a view is the age of the oldest event that it lacks, however long nothing was written before."""

from __future__ import annotations

import time

import pytest

from producers.node.readiness import lag
from tests.integrity.logs import ListedLedger, event


def log_of(*ages: float) -> tuple[ListedLedger, int]:
    """A log whose events are so many seconds old, the first one first; and when its last was stored."""
    now = time.time_ns()
    events = [event(n)._replace(stored_ns=now - int(age * 1e9)) for n, age in enumerate(ages, 1)]
    return ListedLedger(events), events[-1].stored_ns


@pytest.mark.parametrize(
    ("ages", "position", "oldest"),
    [
        ([7200, 0.1], 1, 0.1),  # the first event after two idle hours is folded in a moment
        ([7200, 0.2, 0.1], 1, 0.2),
        ([7200, 90, 0.1], 1, 90),  # a view that stands still is told from a burst
        ([7200, 90], 1, 90),
        ([7200], 0, 7200),
        ([7200], 1, 0),
    ],
)
async def test_the_age_is_that_of_the_first_event_that_is_not_folded(
    ages: list[float], position: int, oldest: float
) -> None:
    log, head_ns = log_of(*ages)
    told = await lag(log, "duckdb", position, len(ages), head_ns)
    assert told["lag_events"] == len(ages) - position
    assert oldest <= told["lag_seconds"] < oldest + 3_600 if oldest else told["lag_seconds"] == 0


async def test_where_the_first_one_is_lost_the_age_is_at_least_that_of_the_head() -> None:
    log, head_ns = log_of(7200, 90, 5)
    gone = ListedLedger([log.events[0], None, log.events[2]])
    assert (await lag(gone, "duckdb", 1, 3, head_ns))["lag_seconds"] >= 5

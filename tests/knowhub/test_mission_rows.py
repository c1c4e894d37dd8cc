"""Every row of the mission is walked through each door that it has, and does what the source says."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.journeys.running_node import RunningNode
from tests.knowhub import checks_knowledge, checks_profiles, checks_recall, checks_resources, checks_scopes
from tests.knowhub.doors import Name
from tests.knowhub.mission import MISSING, PARTLY, ROWS
from tests.knowhub.walking import Walk

CHECKS: dict[str, Callable[[Walk], None]] = {
    row: getattr(family, row.lower())
    for row in ROWS
    for family in (checks_knowledge, checks_scopes, checks_profiles, checks_recall, checks_resources)
    if hasattr(family, row.lower())
}
STEPS = [(row, door) for row, doors in ROWS.items() for door in doors]


@pytest.fixture
def open_doors() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize(("row", "door"), STEPS, ids=[f"{row} {door}" for row, door in STEPS])
def test_the_row_holds_through_the_door(shared_node: RunningNode, open_doors: ExitStack, row: str, door: Name) -> None:
    if row in MISSING:
        pytest.skip(f"MISSING {row}: {MISSING[row]}")
    CHECKS[row](Walk(shared_node.url, door, open_doors))


@pytest.mark.parametrize("row", PARTLY)
def test_what_is_missing_of_a_row_is_named(row: str) -> None:
    assert row in CHECKS
    pytest.skip(f"MISSING in {row}: {PARTLY[row]}")


def test_every_row_is_checked_or_named_as_missing() -> None:
    assert CHECKS.keys() | MISSING.keys() == ROWS.keys()
    assert not CHECKS.keys() & MISSING.keys(), "a row that is checked is not missing"

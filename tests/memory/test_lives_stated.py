"""What becomes of a short memory is the same event, whichever node states it and when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from consumers.reactors.lives import GRACE, LifeKeeper
from ledger.event import NewEvent
from projections.views.knowledge.lives import Due, due

OVER = datetime(2026, 3, 5, 11, 59, 57, tzinfo=UTC)


async def stated(at: datetime, *, promoted: bool) -> str:
    """The id of what a node states at a moment that it looks at."""
    appended: list[NewEvent] = []

    class View:
        position = 7

        async def ask(self, question: Callable[..., Any], *_about: Any) -> Any:
            assert question is due
            ends = (OVER + timedelta(seconds=60 if promoted else 0)).timestamp()
            return [Due("mood", 60, ends, 3, 3 if promoted else 0, promoted)], None

    async def append(events: Sequence[NewEvent]) -> list[Any]:
        appended.extend(events)
        return []

    assert await LifeKeeper("default", View(), append).look(at) == 1  # type: ignore[arg-type]  # all that it asks of one
    (event,) = appended
    assert event.id is not None
    return event.id


@pytest.mark.parametrize("promoted", [False, True])
async def test_two_nodes_that_state_it_on_both_sides_of_a_minute_state_one_event(promoted: bool) -> None:
    soon = [OVER + GRACE + timedelta(seconds=each) for each in (0.0, 0.9, 1.1, 5.0, 50.0)]
    assert len({await stated(at, promoted=promoted) for at in soon}) == 1


async def test_what_was_refused_as_too_early_is_stated_again_later() -> None:
    first, later = OVER + GRACE, OVER + GRACE + timedelta(minutes=1)
    assert await stated(first, promoted=False) != await stated(later, promoted=False)

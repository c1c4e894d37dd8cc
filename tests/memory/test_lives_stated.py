"""What becomes of a short memory is the same event, whichever node states it and when."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from consumers.reactors.lives import GRACE, LifeKeeper
from kledger.contract.errors import BrokerUnavailable
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


async def test_a_node_whose_clock_is_days_ahead_does_not_fill_the_log_with_what_is_refused() -> None:
    appended: list[NewEvent] = []

    class View:
        """One whose position moves with each refusal, and which has the memory still."""

        @property
        def position(self) -> int:
            return len(appended)

        async def ask(self, *_about: Any) -> Any:
            return [
                Due("mood", 60, OVER.timestamp(), 3, 0, False),
                Due("other", 60, OVER.timestamp(), 4, 0, False),
            ], None

    async def append(events: Sequence[NewEvent]) -> list[Any]:
        appended.extend(events)
        return []

    node = LifeKeeper("default", View(), append)  # type: ignore[arg-type]  # all that it asks of one
    for minute in range(3 * 24 * 60):
        await node.look(OVER + GRACE + timedelta(minutes=minute))
        await node.look(OVER + GRACE + timedelta(minutes=minute, seconds=1))
    assert len(appended) == len({event.id for event in appended}), "what the log has is not sent again"
    assert len(appended) <= 2 * 14


async def test_what_the_broker_did_not_take_is_sent_again() -> None:
    sent: list[int] = []

    class View:
        position = 7

        async def ask(self, *_about: Any) -> Any:
            return [Due("mood", 60, OVER.timestamp(), 3, 0, False)], None

    async def append(events: Sequence[NewEvent]) -> list[Any]:
        sent.append(len(events))
        if len(sent) == 1:
            raise BrokerUnavailable("not now")
        return []

    node = LifeKeeper("default", View(), append)  # type: ignore[arg-type]  # all that it asks of one
    with pytest.raises(BrokerUnavailable):
        await node.look(OVER + GRACE)
    await node.look(OVER + GRACE + timedelta(seconds=1))
    assert sent == [1, 1]

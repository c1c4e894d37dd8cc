"""What each recall asks is asked again once it may have changed, and for the best of late where they may lack."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.search import lately
from projections.search.ask import has_the_best_since
from projections.search.asked import RECENT
from projections.search.lately import Lately
from projections.vectors.store.port import Found, merged
from projections.vectors.store.ties import best
from projections.views.knowledge.lives import next_end
from projections.views.lineage.ask import position_at

NOON = datetime(2026, 3, 5, 12, 0, 7, tzinfo=UTC)
WEEK = timedelta(days=7)
MOST = 8
FIRST_STATE, SECOND_STATE = (0, 4, 0), (0, 5, 0)


class Clock(datetime):
    """A clock that stands still until it is moved."""

    at = NOON

    @classmethod
    def now(cls, _: Any = None) -> datetime:  # type: ignore[override]  # of the class that it stands for
        return cls.at


class CountedView:
    """A view that has one answer for each question, and counts them."""

    def __init__(self) -> None:
        self.instance = object()
        self.asked: list[Any] = []
        self.answers: dict[Any, Any] = {position_at: (41, False), next_end: None}

    async def ask(self, question: Any, *about: Any) -> Any:
        self.asked.append(about)
        return self.answers[question]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> type[Clock]:
    monkeypatch.setattr(lately, "datetime", Clock)
    monkeypatch.setattr(Clock, "at", NOON)
    return Clock


async def test_the_position_so_long_ago_is_asked_once_a_minute_and_of_each_file(clock: type[Clock]) -> None:
    view = CountedView()
    asked = Lately(view)  # type: ignore[arg-type]  # it stands for the view
    assert [await asked.since(WEEK), await asked.since(WEEK)] == [41, 41]
    assert view.asked == [(NOON.replace(second=0) - WEEK,)], "to the minute, so that it is within a minute of a week"
    clock.at = NOON + timedelta(minutes=1)
    view.answers[position_at] = (43, False)
    assert await asked.since(WEEK) == 43
    view.instance = object()
    view.answers[position_at] = (12, True)
    assert await asked.since(WEEK) == 12
    assert await asked.since(timedelta(days=1)) == 12
    assert len(view.asked) == 4


async def test_the_next_end_is_asked_again_when_it_is_over_or_an_item_has_changed(clock: type[Clock]) -> None:
    view = CountedView()
    asked = Lately(view)  # type: ignore[arg-type]  # it stands for the view
    assert [await asked.next_end("default", FIRST_STATE) for _ in range(2)] == [None, None]
    assert len(view.asked) == 1
    view.answers[next_end] = soon = NOON + timedelta(seconds=30)
    assert [await asked.next_end("default", SECOND_STATE) for _ in range(2)] == [soon, soon]
    assert len(view.asked) == 2
    clock.at = soon
    view.answers[next_end] = later = NOON + timedelta(seconds=90)
    assert await asked.next_end("default", SECOND_STATE) == later
    assert await asked.next_end("another", SECOND_STATE) == later
    assert len(view.asked) == 4


SCORES = st.none() | st.integers(0, 3)
STORES = st.lists(st.tuples(SCORES, SCORES), max_size=40)
"""For each version, the oldest first, how it scores by words and by vector; few scores, so that many tie."""


def searched(store: Sequence[tuple[int | None, int | None]], limit: int, since: int) -> list[Found]:
    """What both paths find among the versions that were made after a position."""
    paths = []
    for path in (0, 1):
        hits = [
            (Found(f"item-{at}", 1, at, None, None), float(scores[path] or 0))
            for at, scores in enumerate(store, 1)
            if scores[path] is not None and at > since
        ]
        hits.sort(key=lambda hit: -hit[1])
        paths.append(best(hits[: limit + 1], limit, lambda most, hits=hits: hits[:most]))  # type: ignore[misc]  # bound now
    return merged(*paths)


@given(STORES, st.integers(0, 40))
def test_where_the_best_of_all_have_the_best_of_late_a_search_for_these_finds_no_others(
    store: list[tuple[int | None, int | None]], since: int
) -> None:
    found = searched(store, MOST, since=0)
    if has_the_best_since(since, found, MOST):
        assert {each.item_id for each in searched(store, RECENT, since)} <= {each.item_id for each in found}


def test_a_search_for_late_versions_is_left_out_where_all_are_late_and_made_where_they_may_be_crowded_out() -> None:
    old = [(3, 3)] * MOST
    late: list[tuple[int | None, int | None]] = [(1, 1)] * RECENT
    assert has_the_best_since(0, searched(old, MOST, 0), MOST)
    assert not has_the_best_since(len(old), searched([*old, *late], MOST, 0), MOST)
    best_of_late: list[tuple[int | None, int | None]] = [(3, 3)] * (RECENT - 1)
    nearly = [*old[: MOST - len(best_of_late)], *best_of_late, *late]
    assert not has_the_best_since(MOST - len(best_of_late), searched(nearly, MOST, 0), MOST), "one is missing"
    assert has_the_best_since(2, searched(old[:3], MOST, 0), MOST), "these are all that there are"

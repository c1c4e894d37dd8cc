"""A batch of nothing but ratings is counted as a set, and comes to what judging each by itself comes to."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.event import Lineage, NewEvent, StoredEvent
from ledger.events.knowledge import Case, KnowledgeRated
from ledger.events.recall import RecallServed, ServedItem
from projections import batch, gate
from projections.batch import fold_batch
from projections.ruling import Candidate
from tests.projections.histories import new_view, rows, saved, state, stored
from tests.projections.test_laws import law

BEFORE = [
    saved("k1", helpful=2),
    saved("k2", owner="user:u", harmful=1),
    NewEvent(
        RecallServed(
            kind="search",
            query="q",
            visible_scopes=["public"],
            items=[ServedItem(id="k1", version=1, relevance=1.0)],
            view_position=2,
        ),
        "recall-1",
        "agent:a",
        lineage=Lineage(trace_id="t1"),
    ),
]


def rating(item: str, number: int, verdict: str = "helpful", trace: str | None = None) -> NewEvent:
    fact = KnowledgeRated(verdict="helpful" if verdict == "helpful" else "harmful", case=Case(task=f"task {number}"))
    return NewEvent(fact, item, "agent:a", lineage=Lineage(trace_id=trace), id=f"rating-{number}")


def ratings(items: tuple[str, ...], ids: st.SearchStrategy[int]) -> st.SearchStrategy[list[NewEvent]]:
    one = st.builds(
        rating,
        st.sampled_from(items),
        ids,
        st.sampled_from(["helpful", "harmful"]),
        st.none() | st.sampled_from(["t1", "t2"]),
    )
    return st.lists(one, min_size=1, max_size=20)


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SMALL", 0)


def folded(log: list[StoredEvent], cut: int) -> dict[str, object]:
    """The view after what came before the ratings, and the ratings in two batches."""
    bench = new_view()
    first = len(BEFORE)
    for part in (log[:first], log[first : first + cut], log[first + cut :]):
        fold_batch(bench, part)
    return dict(state(bench))


@law
@given(
    rated=ratings(("k1", "k2"), st.integers(0, 1_000)) | ratings(("k1", "k2", "nobody's"), st.integers(0, 8)),
    cut=st.integers(0, 20),
)
def test_a_batch_of_ratings_gives_the_view_that_ratings_judged_one_by_one_give(rated: list[NewEvent], cut: int) -> None:
    log = stored([*BEFORE, *rated])
    batch.SMALL = 0
    as_a_set = folded(log, cut)
    batch.SMALL = 256
    assert as_a_set == folded(log, cut)


def test_ratings_of_items_that_are_there_are_not_judged_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = new_view()
    fold_batch(bench, stored(BEFORE))

    def judge(candidates: Iterable[Candidate], *_: object) -> gate.Judgement:
        raise AssertionError(f"{len(list(candidates))} ratings are judged one by one")

    monkeypatch.setattr(gate, "judge", judge)
    rated = [rating("k1", number, "harmful" if number % 4 == 0 else "helpful") for number in range(100)]
    counted = fold_batch(bench, stored(rated, len(BEFORE) + 1))
    assert (counted.accepted, counted.refused) == (100, 0)
    now = rows(bench.con, "SELECT helpful, harmful, position FROM knowledge WHERE id = 'k1'")
    assert now == [(77, 25, len(BEFORE) + 100)]


@pytest.mark.parametrize("among", ["an unknown item", "an id that was there before", "an id twice"])
def test_one_rating_that_does_not_count_is_refused_and_the_others_count(among: str) -> None:
    bench = new_view()
    fold_batch(bench, stored([*BEFORE, rating("k1", 0)]))
    odd = {
        "an unknown item": rating("nobody's", 1),
        "an id that was there before": rating("k2", 0),
        "an id twice": rating("k2", 2),
    }[among]
    counted = fold_batch(bench, stored([rating("k1", 2), odd, rating("k1", 3)], len(BEFORE) + 2))
    assert (counted.accepted, counted.refused) == (2, 1)
    refused = rows(bench.con, "SELECT position, code FROM refused_events")
    assert refused == [(len(BEFORE) + 3, "unknown_knowledge" if "unknown" in among else "duplicate_event")]
    assert rows(bench.con, "SELECT helpful FROM knowledge WHERE id = 'k1'") == [(5,)]

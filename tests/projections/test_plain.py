"""A batch of items saved, revised and rated is judged as a set, and comes to what judging each by itself comes to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kledger.contract.knowledge import Case
from ledger.event import Lineage, NewEvent, StoredEvent
from ledger.events.knowledge import KnowledgeRated, KnowledgeRetired, KnowledgeRevised, KnowledgeSaved
from ledger.events.recall import RecallServed, ServedItem
from projections.engine import batch, gate
from projections.engine.batch import fold_batch
from projections.fold_kit.decisions import Candidate
from projections.fold_kit.workbench import Workbench
from tests.examples import law
from tests.projections.histories import new_view, rows, saved, state, stored

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


def rating(
    item: str,
    number: int,
    verdict: str = "helpful",
    trace: str | None = None,
    by: str = "agent:a",
    through: str | None = None,
) -> NewEvent:
    said: Literal["helpful", "harmful"] = "helpful" if verdict == "helpful" else "harmful"
    fact = KnowledgeRated(verdict=said, case=Case(task=f"task {number}"), through=through)
    return NewEvent(fact, item, by, lineage=Lineage(trace_id=trace), id=f"rating-{number}")


def ratings(items: tuple[str, ...], ids: st.SearchStrategy[int]) -> st.SearchStrategy[list[NewEvent]]:
    one = st.builds(
        rating,
        st.sampled_from(items),
        ids,
        st.sampled_from(["helpful", "harmful"]),
        st.none() | st.sampled_from(["t1", "t2"]),
        st.sampled_from(["agent:a", "agent:a", "user:u", "user:other"]),
        st.none() | st.sampled_from(["team:t", "public", "user:u"]),
    )
    return st.lists(one, min_size=1, max_size=20)


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SMALL", 0)
    monkeypatch.setattr(gate, "LEAST", 0)


def revision(
    item: str,
    number: int,
    by: str = "agent:a",
    expected: int | None = None,
    owner: str | None = None,
    scopes: list[str] | None = None,
) -> NewEvent:
    fact = KnowledgeRevised(content=f"content {number}", expected_version=expected, owner=owner, scopes=scopes)
    return NewEvent(fact, item, by, id=f"revision-{number}")


def saving(item: str, by: str, owner: str, helpful: int, scope: str = "public") -> NewEvent:
    fact = KnowledgeSaved(types=["tool"], task="t", content="c", scopes=[scope], owner=owner, helpful=helpful)
    return NewEvent(fact, item, by)


ITEMS = ("k1", "k2", "k3", "k4", "k5")
OTHERS = st.sampled_from(["agent:a", "user:u"])
SCOPES = ("public", "public", "agent:a", "user:u", "team:t")


@st.composite
def plain_events(draw: st.DrawFn) -> list[NewEvent]:
    """What most often counts, every event of it; now and then somebody says what he may not, or twice."""
    known, said = {"k1": "agent:a", "k2": "user:u"}, []
    for number in range(draw(st.integers(1, 20))):
        item, odd = draw(st.sampled_from(ITEMS)), draw(st.integers(0, 11)) == 0
        by = draw(OTHERS) if odd else known.get(item, "agent:a")
        kind = draw(st.sampled_from(["save", "revise", "rate"]))
        if kind == "save" and (odd or item not in known):
            known[item] = by
            said.append(saving(item, by, draw(OTHERS) if odd else by, number % 3, draw(st.sampled_from(SCOPES))))
        elif kind == "revise" and (odd or item in known):
            scopes = [draw(st.sampled_from(SCOPES))] if draw(st.booleans()) else None
            said.append(revision(item, number, by, draw(st.integers(1, 3)) if odd else None, scopes=scopes))
        elif odd or item in known:
            judge = draw(OTHERS) if draw(st.integers(0, 5)) == 0 else known.get(item, "agent:a")
            verdict, through = draw(st.sampled_from(["helpful", "harmful"])), draw(st.sampled_from([None, "team:t"]))
            said.append(rating(item, 1 if odd else number, verdict, by=judge, through=through))
    return said


later = st.builds(
    revision,
    st.sampled_from(ITEMS),
    st.integers(1_000, 2_000),
    OTHERS,
    st.none() | st.integers(1, 3),
    st.none() | OTHERS,
    st.none() | st.sampled_from([["user:u"], ["team:t", "user:other"], ["agent:b"]]),
) | st.builds(NewEvent, st.just(KnowledgeRetired()), st.sampled_from(ITEMS), OTHERS)


def folded(log: list[StoredEvent], cut: int) -> dict[str, object]:
    """The view after what came before, and the rest in two batches."""
    bench, rest = begun_view(log), log[len(BEFORE) :]
    for part in (rest[:cut], rest[cut:]):
        fold_batch(bench, part)
    return dict(state(bench))


def begun_view(log: list[StoredEvent]) -> Workbench:
    """A view with what came before folded in, judged one by one: as a set it takes seven times as long."""
    bench = new_view()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(batch, "SMALL", 256)
        fold_batch(bench, log[: len(BEFORE)])
    return bench


@law(30)
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


@law(30, dear=True)
@given(plain=plain_events(), begun=st.lists(later, max_size=3), cut=st.integers(0, 20))
def test_a_batch_of_plain_events_gives_the_view_that_events_judged_one_by_one_give(
    plain: list[NewEvent], begun: list[NewEvent], cut: int
) -> None:
    log = stored([*BEFORE, *begun, *plain])
    batch.SMALL = 0
    as_a_set = folded(log, len(begun) + cut)
    batch.SMALL = 256
    assert as_a_set == folded(log, len(begun) + cut)


def test_plain_events_that_all_count_are_not_judged_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = new_view()
    fold_batch(bench, stored(BEFORE))
    monkeypatch.setattr(gate, "judge", not_to_be_asked)
    said = [
        saved("k3", helpful=1),
        rating("k3", 1),
        revision("k3", 1, expected=1),
        revision("k1", 2),
        revision("k3", 3, expected=2),
        rating("k1", 2),
    ]
    counted = fold_batch(bench, stored(said, len(BEFORE) + 1))
    assert (counted.accepted, counted.refused) == (6, 0)
    now = rows(bench.con, "SELECT id, version, content, helpful FROM knowledge WHERE id IN ('k1', 'k3') ORDER BY id")
    assert now == [("k1", 2, "content 2", 3), ("k3", 3, "content 3", 2)]


ODD = {
    "saved for another": ([saving("k3", "agent:a", "user:u", 0)], ["not_owner"]),
    "saved once more": ([saving("k1", "agent:a", "agent:a", 0)], ["knowledge_exists"]),
    "saved twice": ([saving("k3", "user:u", "user:u", 0), saving("k3", "user:u", "user:u", 0)], ["knowledge_exists"]),
    "revised by another": ([revision("k1", 1, "user:u")], ["not_owner"]),
    "revised by another than who just saved it": (
        [saving("k3", "user:u", "user:u", 0), revision("k3", 1)],
        ["not_owner"],
    ),
    "revised and never saved": ([revision("k3", 1)], ["unknown_knowledge"]),
    "revised before it is saved": ([revision("k3", 1), saving("k3", "agent:a", "agent:a", 0)], ["unknown_knowledge"]),
    "revised on another version": ([revision("k1", 1), revision("k1", 2, expected=1)], ["version_conflict"]),
    "handed over": ([revision("k1", 1, owner="user:u"), revision("k1", 2)], ["not_owner"]),
    "handed over, and that is all": ([revision("k1", 1, owner="user:u")], []),
    "rated before it is saved": ([rating("k3", 1), saving("k3", "agent:a", "agent:a", 0)], ["unknown_knowledge"]),
    "rated by who does not read it": (
        [saving("k3", "user:u", "user:u", 0, "user:u"), rating("k3", 1)],
        ["not_reader"],
    ),
    "rated by who read it before": (
        [saving("k3", "user:u", "user:u", 0), revision("k3", 1, "user:u", scopes=["user:u"]), rating("k3", 1)],
        ["not_reader"],
    ),
    "rated before others were kept out": (
        [saving("k3", "user:u", "user:u", 0), rating("k3", 1), revision("k3", 1, "user:u", scopes=["user:u"])],
        [],
    ),
    "rated through what does not read it": (
        [saving("k3", "user:u", "user:u", 0, "team:t"), rating("k3", 1, through="team:x")],
        ["not_reader"],
    ),
    "rated through a person": (
        [saving("k3", "user:u", "user:u", 0, "team:t"), rating("k3", 1, through="user:u")],
        ["not_reader"],
    ),
    "rated through a team that reads it": (
        [saving("k3", "user:u", "user:u", 0, "team:t"), rating("k3", 1, through="team:t")],
        [],
    ),
    "rated twice under one id": ([rating("k1", 1), rating("k1", 1)], ["duplicate_event"]),
}


@pytest.mark.parametrize("what", ODD)
def test_what_does_not_count_among_plain_events_is_refused_and_the_rest_counts(what: str) -> None:
    odd, codes = ODD[what]
    log = stored([*BEFORE, rating("k2", 91), *odd, saving("k4", "agent:a", "agent:a", 1), rating("k4", 92)])
    bench = begun_view(log)
    fold_batch(bench, log[len(BEFORE) :])
    assert rows(bench.con, "SELECT code FROM refused_events") == [(code,) for code in codes]
    assert rows(bench.con, "SELECT helpful FROM knowledge WHERE id IN ('k2', 'k4') ORDER BY id") == [(2,), (2,)]
    batch.SMALL = 256
    assert dict(state(bench)) == folded(log, 0)


def not_to_be_asked(candidates: Iterable[Candidate], *_: object) -> gate.Judgement:
    raise AssertionError(f"{len(list(candidates))} events are judged one by one")


def test_ratings_of_items_that_are_there_are_not_judged_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = new_view()
    fold_batch(bench, stored(BEFORE))

    monkeypatch.setattr(gate, "judge", not_to_be_asked)
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

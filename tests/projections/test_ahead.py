"""A read of one item that comes before the fold says what it would say after it, or waits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kledger.contract.scopes import Caller
from ledger.event import NewEvent, StoredEvent
from ledger.events.knowledge import KnowledgeRetired, KnowledgeRevised
from ledger.store.parked import NONE_PARKED, Decision
from projections.engine import batch, gate
from projections.engine.ahead.between import A_FEW, UNTOUCHED, Ahead
from projections.engine.ahead.just_saved import may_read, row_of
from projections.engine.batch import fold_batch
from projections.fold_kit.identities import LEAST, Identities
from projections.fold_kit.workbench import Workbench
from projections.views.feedback.ask import judged_item, unjudged
from projections.views.knowledge.ask import whole
from tests.examples import law as law_of
from tests.projections.histories import histories, new_view, parts, rows, saved, state, stored, view_of

EVERYBODY = Caller(reads_all=True)
READERS = (EVERYBODY, Caller(), Caller(user="王"), Caller(agent="a"), Caller(org="x y"), Caller(team="t"))
law = law_of(30)


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SMALL", batch.SMALL)
    monkeypatch.setattr(gate, "LEAST", 0)


def mindful(room: int = LEAST) -> Workbench:
    """An empty view that keeps its ids in mind; with little room it takes some new ids for known ones."""
    bench = new_view()
    bench.identities = Identities(room)
    return bench


def folded(bench: Workbench, events: list[StoredEvent]) -> None:
    fold_batch(bench, events)
    assert bench.identities is not None
    bench.identities.follow(bench.con, bench.position())


def in_view(bench: Workbench, org: str, item: str, caller: Caller = EVERYBODY) -> Any:
    return judged_item(bench.con, org, caller, item)


def items_in(bench: Workbench) -> list[tuple[str, str]]:
    return rows(bench.con, "SELECT DISTINCT org, id FROM knowledge_versions")


@law
@given(log=histories(), cut=st.integers(0, 100), pace=st.integers(1, 5))
def test_what_is_read_ahead_is_what_the_fold_makes(log: list[StoredEvent], cut: int, pace: int) -> None:
    cut %= len(log) + 1
    before, after, ahead = mindful(2), new_view(), Ahead()
    if cut:
        folded(before, log[:cut])
        fold_batch(after, log[:cut])
    before.identities.follow(before.con, before.position()) if before.identities else None
    ahead.begin(cut)
    for at in range(cut, len(log), pace):
        come = log[at : at + pace]
        ahead.arrived(come, cut, before.identities, NONE_PARKED)
        fold_batch(after, come)
        position = come[-1].position
        for org, item in {*items_in(before), *items_in(after)}:
            found = ahead.of(org, item, position, cut)
            if found is UNTOUCHED:
                assert in_view(before, org, item) == in_view(after, org, item)
            elif isinstance(found, StoredEvent) and (row := row_of(before.con, before.keyring, found)) is not None:
                for reader in READERS:
                    made = in_view(after, org, item, reader)
                    assert may_read(reader, row) == (made is not None)
                    assert made is None or unjudged(whole(row)) | {"position": row["position"]} == made


@law
@given(log=histories(), cuts=st.lists(st.integers(0, 100), max_size=5), small=st.sampled_from([0, 256]))
def test_ids_that_are_kept_in_mind_change_nothing(log: list[StoredEvent], cuts: list[int], small: int) -> None:
    batch.SMALL = small
    plain = state(view_of(log, cuts))
    bench = mindful()
    for number, part in enumerate(parts(log, cuts)):
        batch.SMALL = small if number % 2 else 256 - small  # each road goes on where the other one was
        folded(bench, part)
    assert state(bench) == plain


def test_a_plain_save_is_read_before_its_fold() -> None:
    bench, ahead = mindful(), Ahead()
    log = stored([saved("k1"), saved("k2", owner="user:ann", scopes=["user:ann"], tags={"a": ["b", 1]})])
    ahead.arrived(log, 0, bench.identities, NONE_PARKED)
    for item, event in zip(("k1", "k2"), log, strict=True):
        found = ahead.of("default", item, 2, 0)
        assert found == event
        row = row_of(bench.con, bench.keyring, event)
        assert row is not None
        assert (row["version"], row["status"], row["position"]) == (1, "active", event.position)
    assert ahead.of("default", "k3", 2, 0) is UNTOUCHED
    assert ahead.of("default", "k1", 3, 0) is None  # 3 has not arrived


LATER = [
    NewEvent(KnowledgeRevised(content="anew"), "k1", "agent:a"),
    NewEvent(KnowledgeRetired(), "k1", "agent:a"),
    saved("k1", content="again"),
]


@pytest.mark.parametrize("later", LATER, ids=lambda event: str(event.fact.name))
def test_what_more_than_its_save_is_about_waits_for_the_fold(later: NewEvent) -> None:
    bench, ahead = mindful(), Ahead()
    ahead.arrived(stored([saved("k1"), later]), 0, bench.identities, NONE_PARKED)
    assert ahead.of("default", "k1", 1, 0) is None


def test_an_id_that_is_taken_waits_for_the_fold() -> None:
    bench, ahead = mindful(), Ahead()
    log = stored([saved("k1"), saved("k1", content="again"), saved("k2")])
    folded(bench, log[:1])
    ahead.begin(1)
    ahead.arrived(log[1:], 1, bench.identities, NONE_PARKED)
    assert ahead.of("default", "k1", 3, 1) is None
    assert ahead.of("default", "k2", 3, 1) == log[2]


def test_an_event_that_comes_twice_waits_for_the_fold() -> None:
    bench, ahead = mindful(), Ahead()
    first = saved("k1")
    twice = NewEvent(saved("k2").fact, "k2", first.actor, id=first.id)
    ahead.arrived(stored([first, twice]), 0, bench.identities, NONE_PARKED)
    assert ahead.of("default", "k2", 2, 0) is None


def test_nothing_is_sure_of_bulk_of_what_is_parked_and_while_folding_is_paused() -> None:
    bench = mindful()
    log = stored([saved(f"k{number}") for number in range(A_FEW + 1)])
    bulk, parked, paused = Ahead(), Ahead(), Ahead()
    bulk.arrived(log, 0, bench.identities, NONE_PARKED)
    decision = Decision(2, "", "parked", "", 3, "")
    parked.arrived(log[:3], 0, bench.identities, {2: decision})
    paused.arrived(log[:3], 0, bench.identities, NONE_PARKED)
    paused.unsure()
    for ahead in (bulk, parked, paused):
        assert ahead.of("default", "k0", 1, 0) is None
        assert ahead.of("default", "other", 1, 0) is None
    assert bulk.of("default", "other", 1, A_FEW + 1) is UNTOUCHED


def test_what_is_folded_is_forgotten() -> None:
    bench, ahead = mindful(), Ahead()
    log = stored([saved("k1"), saved("k2")])
    ahead.arrived(log[:1], 0, bench.identities, NONE_PARKED)
    folded(bench, log[:1])
    assert ahead.of("default", "k1", 1, 1) is UNTOUCHED
    ahead.arrived(log[1:], 1, bench.identities, NONE_PARKED)
    assert ahead.of("default", "k1", 2, 1) is UNTOUCHED
    assert ahead.of("default", "k2", 2, 1) == log[1]


async def test_a_read_waits_until_its_position_has_arrived_and_no_longer() -> None:
    bench, ahead = mindful(), Ahead()
    waiting = asyncio.create_task(ahead.until(1, 60))
    await asyncio.sleep(0)
    assert not waiting.done()
    ahead.arrived(stored([saved("k1")]), 0, bench.identities, NONE_PARKED)
    await waiting
    await ahead.until(2, 0)


class _Asked(Identities):
    """Identities that count how often they are asked for one."""

    times = 0

    def may_have(self, key: int) -> bool:
        self.times += 1
        return super().may_have(key)


def test_what_is_folded_before_anybody_reads_it_is_never_looked_at() -> None:
    known, ahead = _Asked(), Ahead()
    log = stored([saved("k1"), saved("k2"), saved("k3")])
    ahead.arrived(log[:2], 0, known, NONE_PARKED)
    known.upto = 2  # both are folded
    ahead.arrived(log[2:], 2, known, NONE_PARKED)
    assert known.times == 0
    assert ahead.of("default", "k1", 3, 2) is UNTOUCHED
    assert ahead.of("default", "k3", 3, 2) == log[2]
    asked = known.times
    assert asked
    assert ahead.of("default", "k3", 3, 2) == log[2]
    assert known.times == asked  # each is looked at once

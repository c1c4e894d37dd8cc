"""Folds may go in lanes, on connections of their own: the same rows as on one, and no batch after half of one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.event import Lineage, NewEvent, StoredEvent
from ledger.events.extraction import ExtractionRequested
from ledger.events.knowledge import KnowledgeRevised
from ledger.store.in_memory import MemoryLedger
from projections.archive.reading import Archive
from projections.engine import batch, gate
from projections.engine.batch import fold_batch
from projections.engine.decode import Decoded
from projections.engine.gate import gate as gate_of
from projections.engine.registry import LANES
from projections.fold_kit.workbench import Facts, Workbench
from projections.live import catch_up
from projections.live.rebuild import rebuild_into
from projections.views.events import fold as events
from tests.archive.archives import archived
from tests.examples import law as law_of
from tests.integrity.logs import ListedLedger
from tests.projections.empty_views import empty_view
from tests.projections.histories import histories, parts, rows, saved, state, stored, view_of
from tests.projections.test_as_sets import mixed

law = law_of(30)
ANN = "user:ann"
LOG = stored([saved(f"k{number}") for number in range(20)])


@pytest.fixture(autouse=True)
def _as_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "SMALL", 0)
    monkeypatch.setattr(gate, "LEAST", 0)


@contextmanager
def lanes() -> Iterator[Workbench]:
    """An empty view with open lanes."""
    with empty_view() as con:
        bench = Workbench(con)
        bench.open_lanes(LANES)
        try:
            yield bench
        finally:
            bench.close()


@law
@given(log=histories() | mixed(), cuts=st.lists(st.integers(0, 100), max_size=3), settled=st.integers(0, 3))
def test_lanes_write_what_one_connection_writes(log: list[StoredEvent], cuts: list[int], settled: int) -> None:
    with lanes() as bench:
        for number, part in enumerate(parts(log, cuts)):
            fold_batch(bench, part)
            if number == settled:
                bench.settle()
        bench.settle()
        assert state(bench) == state(view_of(log, cuts))


def test_a_lane_writes_while_the_next_batch_is_judged() -> None:
    judged = threading.Event()

    def writes_late(bench: Workbench, facts: Facts) -> None:
        assert judged.wait(30), "the next batch waited for this one"
        events.fold(bench, facts)

    def judges(bench: Workbench, decoded: Decoded) -> list[tuple[int, str, str]]:
        rejected = gate_of(bench, decoded)
        judged.set()
        return rejected

    with lanes() as bench, pytest.MonkeyPatch.context() as patched:
        patched.setitem(LANES, "log", (writes_late,))
        fold_batch(bench, LOG[:10])
        patched.setattr(batch, "gate", judges)
        fold_batch(bench, LOG[10:])
        bench.settle()
        assert rows(bench.con, "SELECT count(*) FROM other_events") == [(20,)]


def test_what_is_folded_in_a_lane_is_there_once_it_is_settled() -> None:
    with lanes() as bench:
        fold_batch(bench, LOG)
        assert rows(bench.con, "SELECT count(*) FROM knowledge_versions") == [(0,)]
        bench.settle()
        assert state(bench) == state(view_of(LOG))


def test_an_id_is_known_again_before_the_lane_of_its_event_is_settled() -> None:
    again = [*stored([saved("k1")]), *stored([saved("k1")], first=2)]
    again[1] = again[1]._replace(body=again[0].body, subject=again[0].subject)
    with lanes() as bench:
        fold_batch(bench, again[:1])
        assert fold_batch(bench, again[1:]).refused == 1
        bench.settle()
        assert rows(bench.con, "SELECT code FROM refused_events") == [("duplicate_event",)]


@pytest.mark.parametrize("cut", [0, 2], ids=["in one batch", "in the batch after"])
def test_a_correction_caused_by_an_extraction_is_known_as_such(cut: int) -> None:
    requested = ExtractionRequested(kind="statement", messages=[{"id": "m"}], owner=ANN, scopes=[ANN])
    revised = KnowledgeRevised(content="another")
    log = stored(
        [
            saved("k1", ANN, scopes=[ANN]),
            NewEvent(requested, "p", ANN, id="asked"),
            NewEvent(revised, "k1", ANN, lineage=Lineage(causation_id="asked")),
            NewEvent(revised.model_copy(update={"content": "a third"}), "k1", ANN, lineage=Lineage(causation_id="no")),
        ]
    )
    with lanes() as bench:
        for part in parts(log, [cut]):
            fold_batch(bench, part)
        bench.settle()
        assert rows(bench.con, "SELECT item_id, position FROM tombstones") == [("k1", 4)]


def test_a_batch_that_fails_behind_its_lanes_leaves_a_file_that_takes_no_batch_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with lanes() as bench:
        with monkeypatch.context() as failing:
            failing.setattr(batch, "FOLDS", (_fails,))
            with pytest.raises(ValueError, match="late"):
                fold_batch(bench, LOG)
        with pytest.raises(RuntimeError, match="half of a batch"):
            fold_batch(bench, LOG)


@pytest.mark.parametrize("settled", [True, False], ids=["when it is settled", "with the next batch"])
def test_what_fails_in_a_lane_is_raised_and_the_file_takes_no_batch_any_more(
    monkeypatch: pytest.MonkeyPatch, settled: bool
) -> None:
    with lanes() as bench:
        with monkeypatch.context() as failing:
            failing.setitem(LANES, "log", (_fails,))
            fold_batch(bench, LOG[:10])
            with pytest.raises(ValueError, match="late"):
                bench.rows_of_lane("log", "SELECT 1")
        goes_on = bench.settle if settled else partial(fold_batch, bench, LOG[10:])
        with pytest.raises(ValueError, match="late"):
            goes_on()
        assert bench.torn


def test_a_batch_that_fails_before_its_lanes_begin_leaves_nothing_and_can_be_folded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with lanes() as bench:
        with monkeypatch.context() as failing:
            failing.setattr(batch, "gate", _fails)
            with pytest.raises(ValueError, match="late"):
                fold_batch(bench, LOG)
        assert fold_batch(bench, LOG).accepted == 20
        bench.settle()
        assert state(bench) == state(view_of(LOG))


async def test_a_rebuild_whose_lane_fails_folds_the_log_once_more_without_lanes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, first = stored([saved(f"k{number}") for number in range(200)]), iter([True])
    ledger = ListedLedger(log)
    await archived(tmp_path, log[:150], 50)

    def fails_once(bench: Workbench, facts: Facts) -> None:
        if next(first, False):
            raise ValueError("once")
        events.fold(bench, facts)

    monkeypatch.setitem(LANES, "log", (fails_once, *LANES["log"][1:]))
    rebuilt = await rebuild_into(ledger, tmp_path / "views.duckdb", archive=Archive.of_node(tmp_path))
    assert next(first, False) is False
    assert rebuilt.archive == {"events": 150, "damaged": []}  # as they were read, not as often
    monkeypatch.undo()
    assert rebuilt.digest == (await rebuild_into(ledger, tmp_path / "again.duckdb")).digest


async def test_lanes_are_settled_where_much_is_kept_for_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, settle, settled = MemoryLedger(), Workbench.settle, []
    await ledger.append_many([saved(f"k{number}") for number in range(200)])

    def settles(bench: Workbench) -> None:
        settled.append(bench.position())
        settle(bench)

    monkeypatch.setattr(Workbench, "settle", settles)
    digest = (await rebuild_into(ledger, tmp_path / "views.duckdb")).digest
    once = len(settled)
    monkeypatch.setattr(catch_up, "MOST_KEPT", -1)
    assert (await rebuild_into(ledger, tmp_path / "again.duckdb")).digest == digest
    assert (once, len(settled)) == (1, 3)


def _fails(*_given: Any) -> Any:
    raise ValueError("late")

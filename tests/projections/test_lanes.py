"""Folds may go in lanes, on connections of their own: the same rows as on one, and never half of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.event import Lineage, NewEvent, StoredEvent
from ledger.events.extraction import ExtractionRequested
from ledger.events.knowledge import KnowledgeRevised
from projections.engine import batch, gate
from projections.engine.batch import fold_batch
from projections.engine.registry import LANES
from projections.fold_kit.workbench import Workbench
from tests.examples import law as law_of
from tests.projections.empty_views import empty_view
from tests.projections.histories import histories, parts, rows, saved, state, stored, view_of

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
        yield bench
        bench.close()


@law
@given(log=histories(), cuts=st.lists(st.integers(0, 100), max_size=3))
def test_lanes_write_what_one_connection_writes(log: list[StoredEvent], cuts: list[int]) -> None:
    with lanes() as bench:
        for part in parts(log, cuts):
            fold_batch(bench, part)
        assert state(bench) == state(view_of(log, cuts))


def test_a_correction_caused_by_an_extraction_of_the_same_batch_is_known_as_such() -> None:
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
        fold_batch(bench, log)
        assert rows(bench.con, "SELECT item_id, position FROM tombstones") == [("k1", 4)]


def test_a_fold_that_fails_leaves_nothing_of_the_batch_on_any_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    with lanes() as bench:
        before = state(bench)
        with monkeypatch.context() as failing:
            failing.setattr(batch, "named", _fails)
            with pytest.raises(ValueError, match="late"):
                fold_batch(bench, LOG)
        assert state(bench) == before
        assert fold_batch(bench, LOG).accepted == 20
        assert state(bench) == state(view_of(LOG))


def test_a_lane_that_fails_leaves_nothing_of_the_batch_on_any_connection() -> None:
    with lanes() as bench:
        before = state(bench)
        bench.con.execute("ALTER TABLE other_links RENAME TO elsewhere")  # the last of its lane
        try:
            with pytest.raises(duckdb.CatalogException, match="other_links"):
                fold_batch(bench, LOG)
        finally:
            bench.con.execute("ALTER TABLE elsewhere RENAME TO other_links")
        assert state(bench) == before
        assert fold_batch(bench, LOG).accepted == 20
        assert state(bench) == state(view_of(LOG))


def test_where_one_of_the_commits_fails_the_file_takes_no_batch_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def without_commit(con: duckdb.DuckDBPyConnection) -> Iterator[None]:
        con.execute("BEGIN TRANSACTION")
        yield
        con.execute("ROLLBACK")
        raise duckdb.IOException("no room for the commit")

    with lanes() as bench:
        with monkeypatch.context() as failing:
            failing.setattr(batch, "transaction", without_commit)
            with pytest.raises(duckdb.IOException):
                fold_batch(bench, LOG)
        with pytest.raises(RuntimeError, match="half of a batch"):
            fold_batch(bench, LOG)


def _fails(*_given: Any) -> Any:
    raise ValueError("late")

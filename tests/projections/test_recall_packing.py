"""Recalls wait as text and are packed together: where one stands changes no row, and none is written twice."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from ledger.event import Lineage, NewEvent, StoredEvent
from ledger.events.recall import Ranking, RecallServed, ServedItem
from projections.engine import batch, gate
from projections.engine.batch import fold_batch
from projections.engine.duckdb import open_view
from projections.fold_kit.workbench import Workbench
from projections.views.recalls import fold
from tests.projections.histories import rows, saved, state, stored, view_of


def recalled(number: int) -> NewEvent:
    items = [ServedItem(id=f"k{number}-{rank}", version=1, relevance=1 / rank) for rank in range(1, number % 4 + 1)]
    ranking = Ranking(policy="p", matches=[None, *(0.5 for _ in items[1:])]) if number % 3 else None
    fact = RecallServed(query=f'"{number}" é', visible_scopes=["public"], items=items, view_position=1, ranking=ranking)
    return NewEvent(fact, f"r{number}", "user:ann", lineage=Lineage(f"t{number % 2}", causation_id=f"c{number}"))


def history(recalls: int) -> list[StoredEvent]:
    return stored([saved("k1"), *(recalled(number) for number in range(recalls)), saved("k2")])


# Of the batches that SQL parses, which are many times as dear, one way of packing.
@pytest.mark.parametrize(("every", "small"), [(1, 256), (3, 256), (5, 256), (3, 0)])
def test_what_waits_and_what_is_packed_are_the_same_rows(
    every: int, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = history(9)
    waiting = view_of(log)
    assert rows(waiting.con, "SELECT count(*) FROM waiting_recalls") == [(9,)]
    monkeypatch.setattr(batch, "SMALL", small)
    monkeypatch.setattr(gate, "LEAST", 0)
    monkeypatch.setattr(fold, "PACK_EVERY", every)
    for cuts in ((), (4,), (2, 3, 8), range(len(log))):
        packed = view_of(log, cuts)
        assert state(packed) == state(waiting), cuts
        for relation in ("events", "recalls", "lineage", "served_items"):
            asked = f"FROM {relation} ORDER BY ALL"
            assert rows(packed.con, asked) == rows(waiting.con, asked), (relation, cuts)
        upto = len(log) // every * every
        left = rows(packed.con, "SELECT position FROM waiting_recalls")
        assert all(position > upto for (position,) in left) or not cuts
        assert len(left) + rows(packed.con, "SELECT count(*) FROM packed_recalls")[0][0] == 9


def test_a_recall_is_written_to_the_disk_without_those_before_it(tmp_path: Path) -> None:
    bench = Workbench(open_view(tmp_path / "view.duckdb"))
    log = stored([recalled(3) for _ in range(120)])
    written = tmp_path / "view.duckdb.wal"
    sizes = []
    for event in log:
        fold_batch(bench, [event])
        sizes.append(written.stat().st_size)
    each = [after - before for before, after in pairwise(sizes)]
    assert max(each) < 2 * min(each)

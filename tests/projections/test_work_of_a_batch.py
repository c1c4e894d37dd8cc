"""The work of a fold follows from its batch: no statement builds a table of all that was folded before."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from kledger.contract.knowledge import Case
from ledger.event import Lineage, NewEvent
from ledger.events.knowledge import KnowledgeRated, KnowledgeRetired, KnowledgeRevised
from ledger.events.recall import RecallServed, ServedItem
from projections.engine import batch, gate
from projections.engine.batch import fold_batch
from projections.engine.duckdb import open_view
from projections.engine.registry import LANES
from projections.fold_kit.workbench import Workbench
from tests.projections.histories import rows, saved, stored

ANN = "user:ann"
BEFORE, BATCH = 6_000, 300


def caused(number: int) -> Lineage:
    """Every second event was caused by one of before."""
    return Lineage(causation_id=f"e{number}" if number % 2 else None)


def log_of_before() -> list[NewEvent]:
    """Items, and recalls that served each to a trace."""
    events = [NewEvent(saved(f"k{n}", ANN, scopes=[ANN]).fact, f"k{n}", ANN, id=f"e{n}") for n in range(BEFORE)]
    for n in range(BEFORE):
        served = [ServedItem(id=f"k{n}", version=1, relevance=0.5)]
        recall = RecallServed(query="q", visible_scopes=[ANN], items=served, view_position=1)
        events.append(NewEvent(recall, f"before-{n}", ANN, lineage=Lineage(trace_id=f"t{n}")))
    return events


def batch_of_all_kinds() -> list[NewEvent]:
    events = []
    for n in range(0, BATCH, 5):
        served = [ServedItem(id=f"k{n}", version=1, relevance=0.5)]
        events += [
            saved(f"new{n}", ANN, scopes=[ANN]),
            NewEvent(KnowledgeRevised(content=f"corrected {n}"), f"k{n}", ANN, lineage=caused(n)),
            NewEvent(
                KnowledgeRated(verdict="helpful", case=Case(task="t", outcome="o")),
                f"k{n + 1}",
                ANN,
                lineage=traced(n + 1),
            ),
            NewEvent(KnowledgeRetired(reason="it is wrong"), f"k{n + 2}", ANN, lineage=caused(n)),
            NewEvent(RecallServed(query="q", visible_scopes=[ANN], items=served, view_position=1), f"recall-{n}", ANN),
        ]
    return events


def traced(number: int) -> Lineage:
    """Every second event is of a trace to which the item was served."""
    return Lineage(trace_id=f"t{number}" if number % 2 else None)


def built(operator: dict[str, Any]) -> Iterator[int]:
    """The rows of each hash table that a plan built for a join: those of its second input."""
    below = operator.get("children") or []
    if operator.get("operator_name", "").strip() == "HASH_JOIN":
        yield below[1]["operator_cardinality"]
    for each in below:
        yield from built(each)


@pytest.mark.parametrize("names", [(), LANES], ids=["committed", "in lanes"])
def test_no_join_of_a_fold_builds_a_table_of_what_was_there_before(
    names: Iterable[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Neither where the batches before are committed, nor in lanes, whose rows are committed at the end alone."""
    monkeypatch.setattr(batch, "SMALL", 0)
    monkeypatch.setattr(gate, "LEAST", 0)
    profiles, seen = dict[Workbench, Path](), dict[str, int]()

    def profiled(name: str) -> Any:
        asked = getattr(Workbench, name)

        def ask(bench: Workbench, statement: str) -> Any:
            if bench not in profiles:
                profiles[bench] = tmp_path / f"profile-{len(profiles)}.json"
                bench.con.execute("SET enable_profiling = 'json'")
                bench.con.execute(f"SET profiling_output = '{profiles[bench]}'")
            answer = asked(bench, statement)
            if profiles[bench].exists():
                seen[statement] = max(built(orjson.loads(profiles[bench].read_bytes())), default=0)
                profiles[bench].unlink()
            return answer

        return ask

    with open_view(None) as con:  # where rows have been before, DuckDB estimates that there are some
        bench = Workbench(con)
        if names:
            bench.open_lanes(names)
        fold_batch(bench, stored(log_of_before()))
        with monkeypatch.context() as patched:
            for name in ("run", "rows", "table"):
                patched.setattr(Workbench, name, profiled(name))
            folded = fold_batch(bench, stored(batch_of_all_kinds(), 2 * BEFORE + 1))
            bench.close_lanes()
        con.execute("RESET enable_profiling")
        assert (folded.accepted, folded.refused) == (BATCH, 0)
        assert rows(con, "SELECT cause, count(*) FROM tombstones GROUP BY ALL ORDER BY ALL") == [
            ("corrected", BATCH // 5),
            ("retired", BATCH // 5),
        ]
        assert rows(con, "SELECT DISTINCT credit FROM feedback ORDER BY ALL") == [("served",), ("untraced",)]
    assert any(number > 0 for number in seen.values())  # some of them join
    assert {statement: number for statement, number in seen.items() if number > 2 * BATCH} == {}

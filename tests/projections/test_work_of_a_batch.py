"""The work of a fold follows from its batch: no statement builds a table of all that was folded before."""

from __future__ import annotations

from collections.abc import Iterator
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
from projections.fold_kit.workbench import Workbench
from tests.projections.empty_views import empty_view
from tests.projections.histories import rows, saved, stored

ANN = "user:ann"
BEFORE, BATCH = 6_000, 300


def caused(number: int) -> Lineage:
    """Every second event was caused by one of before."""
    return Lineage(causation_id=f"e{number}" if number % 2 else None)


def log_of_before() -> list[NewEvent]:
    return [NewEvent(saved(f"k{n}", ANN, scopes=[ANN]).fact, f"k{n}", ANN, id=f"e{n}") for n in range(BEFORE)]


def batch_of_all_kinds() -> list[NewEvent]:
    events = []
    for n in range(0, BATCH, 5):
        served = [ServedItem(id=f"k{n}", version=1, relevance=0.5)]
        events += [
            saved(f"new{n}", ANN, scopes=[ANN]),
            NewEvent(KnowledgeRevised(content=f"corrected {n}"), f"k{n}", ANN, lineage=caused(n)),
            NewEvent(KnowledgeRated(verdict="helpful", case=Case(task="t", outcome="o")), f"k{n + 1}", ANN),
            NewEvent(KnowledgeRetired(reason="it is wrong"), f"k{n + 2}", ANN, lineage=caused(n)),
            NewEvent(RecallServed(query="q", visible_scopes=[ANN], items=served, view_position=1), f"recall-{n}", ANN),
        ]
    return events


def built(operator: dict[str, Any]) -> Iterator[int]:
    """The rows of each hash table that a plan built for a join: those of its second input."""
    below = operator.get("children") or []
    if operator.get("operator_name", "").strip() == "HASH_JOIN":
        yield below[1]["operator_cardinality"]
    for each in below:
        yield from built(each)


def test_no_join_of_a_fold_builds_a_table_of_what_was_there_before(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(batch, "SMALL", 0)
    monkeypatch.setattr(gate, "LEAST", 0)
    profile, seen = tmp_path / "profile.json", dict[str, int]()

    def profiled(name: str) -> Any:
        asked = getattr(Workbench, name)

        def ask(bench: Workbench, statement: str) -> Any:
            answer = asked(bench, statement)
            if profile.exists():
                seen[statement] = max(built(orjson.loads(profile.read_bytes())), default=0)
                profile.unlink()
            return answer

        return ask

    with empty_view() as con:
        bench = Workbench(con)
        fold_batch(bench, stored(log_of_before()))
        for name in ("run", "rows", "table"):
            monkeypatch.setattr(Workbench, name, profiled(name))
        con.execute("SET enable_profiling = 'json'")
        con.execute(f"SET profiling_output = '{profile}'")
        folded = fold_batch(bench, stored(batch_of_all_kinds(), BEFORE + 1))
        con.execute("RESET enable_profiling")
        assert (folded.accepted, folded.refused) == (BATCH, 0)
        assert rows(con, "SELECT cause, count(*) FROM tombstones GROUP BY ALL ORDER BY ALL") == [
            ("corrected", BATCH // 5),
            ("retired", BATCH // 5),
        ]
    assert any(number > 0 for number in seen.values())  # some of them join
    assert {statement: number for statement, number in seen.items() if number > 2 * BATCH} == {}

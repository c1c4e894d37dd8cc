"""A statement of an analyst that nothing can stop: its caller has an answer, others go on, the node ends in time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pytest

from kledger import LedgerClient
from kledger.contract.errors import IllegalQuery
from projections.analysts.admission import AT_ONCE
from projections.analysts.quack import load_extensions
from tests.journeys.running_node import RunningNode, assert_kept_once, running, until
from tests.patience import PATIENCE

# Hours within one step: it compares 900,000 letters with as many, and no number stands where the guard would count it.
STUCK = """
    SELECT levenshtein(a, b)
    FROM (SELECT repeat('x', 900000 + i::INT) AS a, repeat('y', 900000 + i::INT) AS b FROM range(2) t(i))
"""
SECONDS = 3.0
"""A machine that is busy begins the step in time."""


@pytest.fixture
def node(tmp_path: Path) -> Iterator[RunningNode]:
    with running(tmp_path / "data", env={"KLEDGER_LIMIT_ANALYST_SECONDS": str(SECONDS)}) as node:
        yield node


def refused(node: RunningNode) -> str:
    with node.client() as ledger, pytest.raises(IllegalQuery) as refusal:
        ledger.sql(STUCK)
    return refusal.value.message


def test_the_callers_have_an_answer_others_a_reason_and_the_node_ends(node: RunningNode, tmp_path: Path) -> None:
    with ThreadPoolExecutor(AT_ONCE + 1) as callers:
        answers = sorted(callers.map(refused, [node] * (AT_ONCE + 1)))
    assert sum("cannot be stopped within one step" in answer for answer in answers) == AT_ONCE
    assert sum("found no place: try again" in answer for answer in answers) == 1
    with node.client() as ledger:
        kept = {
            saved["id"]: saved["position"] for saved in (ledger.save(f"{n}", "goes on", ["tool"]) for n in range(9))
        }
        assert [ledger.get(item)["content"] for item in kept] == ["goes on"] * 9
        assert ledger.health()["status"] == "healthy"
        with pytest.raises(IllegalQuery, match="found no place"):  # the places are taken until the statements end
            ledger.sql("SELECT 1")
    began = time.monotonic()
    assert node.stop() == 0
    assert time.monotonic() - began < PATIENCE
    assert "the process ends while statements of analysts run" in node.said()
    with running(tmp_path / "data") as again, again.client() as ledger:
        assert_kept_once(ledger, kept)


def test_over_quack_it_keeps_neither_the_end_of_the_node_nor_a_rebuild_waiting(node: RunningNode) -> None:
    analyst = duckdb.connect()
    load_extensions(analyst)
    with node.client() as ledger:
        analyst.execute(ledger.attach()["statement"])
        asking = threading.Thread(target=ask, args=(analyst,), daemon=True)
        used = cpu_seconds(node)
        asking.start()
        until(lambda: cpu_seconds(node) > used + 2, "the statement runs")
        saved = ledger.save("goes on", "goes on", ["tool"])
        assert ledger.get(saved["id"])["content"] == "goes on"
        rebuilt = ledger.wait_job(ledger.start_job("rebuild")["id"], timeout=PATIENCE)
        assert rebuilt["result"] is not None
        assert rebuilt["result"]["swapped"]
        until(lambda: answered(ledger), "another statement is answered beside it")
    began = time.monotonic()
    assert node.stop() == 0
    assert time.monotonic() - began < PATIENCE


def ask(analyst: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error):
        analyst.execute("FROM kl.query(?)", [STUCK]).fetchall()


def answered(ledger: LedgerClient) -> bool:
    """Whether a statement is: it has as little time as any, while another one takes a processor."""
    try:
        return ledger.sql("SELECT 42 AS a")["rows"] == [[42]]
    except IllegalQuery:
        return False


def cpu_seconds(node: RunningNode) -> float:
    """Processor time that the node has taken."""
    parts = Path(f"/proc/{node.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(parts[11]) + int(parts[12])) / 100

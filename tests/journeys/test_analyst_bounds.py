"""What an analyst's statement may take of a node: its answer is whole and bounded, and so is the memory for it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from kledger.contract.errors import IllegalQuery
from projections.analysts.quack import load_extensions
from tests.journeys.running_node import RunningNode, running

MIB = 2**20
MAY_GROW = 400 * MIB
PEAK = MAY_GROW + 1400 * MIB  # DuckDB's own limit, and what a step of it takes before it looks for an interrupt

REFUSED = {
    "repeat": "SELECT repeat('x', 2000000000)",
    "lpad": "SELECT lpad('x', 2000000000, 'y')",
    "rpad in a subquery": "SELECT length(s) FROM (SELECT rpad('x', 2000000000, 'y') AS s)",
    "list_resize": "SELECT len(list_resize([1], 2000000000))",
    "a list of numbers": "SELECT len(range(2000000000))",
    "a computed number": "SELECT length(repeat('x', 40000 * 50000))",
    "repeat of repeat": "SELECT max(length(repeat(repeat(repeat('x', 1000), 1000), 500 + i::INT))) FROM range(64) t(i)",
    "a wide format": "SELECT length(printf('%1900000000d', 1))",
    "a wide format of the other kind": "SELECT length(format('{:1900000000d}', 1))",
}
GROWING = {
    "many long texts": "SELECT max(length(repeat('x', 300000) || i)) FROM range(20000) t(i)",
    "string_agg": "SELECT length(string_agg(repeat('x', 100000), '')) FROM range(20000)",
    "doubling": "WITH RECURSIVE t AS (SELECT 'x' AS s, 0 AS i UNION ALL SELECT s || s, i + 1 FROM t WHERE i < 31) "
    "SELECT max(length(s)) FROM t",
    "many rows of many bytes": "SELECT repeat('x', 100000) FROM range(3000)",
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningNode]:
    """A node that gives analysts little memory."""
    data = tmp_path_factory.mktemp("bounds") / "data"
    with running(data, env={"KLEDGER_LIMIT_ANALYST_MEMORY": str(MAY_GROW)}) as node:
        yield node


def memory(node: RunningNode, what: str) -> int:
    for line in Path(f"/proc/{node.process.pid}/status").read_text().splitlines():
        if line.startswith(what):
            return int(line.split()[1]) * 1024
    raise AssertionError(what)


@pytest.mark.parametrize("query", REFUSED.values(), ids=REFUSED)
def test_a_value_of_gigabytes_is_refused_before_it_is_made(node: RunningNode, query: str) -> None:
    with node.client() as ledger, attach(node) as analyst:
        with pytest.raises(IllegalQuery, match="would make a value of more than"):
            ledger.sql(query)
        with pytest.raises(duckdb.Error, match="would make a value of more than"):
            analyst.execute("FROM kl.query(?)", [query])


def test_ordinary_padding_and_bars_are_answered(node: RunningNode) -> None:
    with node.client() as ledger:
        found = ledger.sql(
            "SELECT lpad('7', 3, '0'), repeat('#', n::INT), len(range(1000)), printf('%5.2f of %s', 0.5, '20000000') "
            "FROM range(3, 4) t(n)"
        )
        assert found["rows"] == [["007", "###", 1000, " 0.50 of 20000000"]]
        assert ledger.sql("SELECT count(*) FROM range(1000000000000) LIMIT 0")["rows"] == []


@pytest.mark.parametrize("query", GROWING.values(), ids=GROWING)
@pytest.mark.parametrize("over", ["http", "quack"])
def test_no_statement_takes_the_memory_of_the_node_and_others_go_on(node: RunningNode, query: str, over: str) -> None:
    Path(f"/proc/{node.process.pid}/clear_refs").write_text("5")  # the peak is counted from here
    before = memory(node, "VmRSS")
    refusals: list[Exception] = []

    def ask() -> None:
        try:
            if over == "http":
                with node.client() as ledger:
                    ledger.sql(query)
            else:
                with attach(node) as analyst:
                    analyst.execute("SELECT count(*) FROM kl.query(?)", [query]).fetchall()
        except (IllegalQuery, duckdb.Error) as refusal:
            refusals.append(refusal)

    asking = threading.Thread(target=ask)
    asking.start()
    with node.client() as other:
        n = 0
        while asking.is_alive():
            saved = other.save("others go on", f"{query} {n}", ["tool"])
            assert other.get(saved["id"])["content"].startswith(query)
            n += 1
            asking.join(0.05)
        assert len(refusals) <= 1
        assert other.health()["status"] == "healthy"
        assert other.sql("SELECT 42 AS a")["rows"] == [[42]]
    assert memory(node, "VmHWM") - before < PEAK


def attach(node: RunningNode) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    load_extensions(connection)
    with node.client() as ledger:
        connection.execute(ledger.attach()["statement"])
    return connection


def test_columns_of_one_name_are_all_there(node: RunningNode) -> None:
    with node.client() as ledger:
        found = ledger.sql("SELECT 'first' AS a, 'second' AS b, 'third' AS a")
        assert found["columns"] == ["a", "b", "a"]
        assert found["rows"] == [["first", "second", "third"]]
        joined = ledger.sql("SELECT * FROM (SELECT 1 AS id, 2 AS n) x JOIN (SELECT 1 AS id, 3 AS n) y ON x.id = y.id")
        assert joined["rows"] == [[1, 2, 1, 3]]
        assert len(joined["columns"]) == len(joined["types"]) == 4


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("170141183460469231731687303715884105727::HUGEINT", 2**127 - 1),
        ("18446744073709551615::UBIGINT", 2**64 - 1),
        ("'infinity'::TIMESTAMPTZ", None),
        ("'-infinity'::DATE", None),
        ("'290000-01-01'::TIMESTAMP", None),
        ("'NaN'::DOUBLE", None),
        ("INTERVAL 1 MONTH", None),
        ("'\\xFF'::BLOB", None),
        ("MAP {'a': 1}", None),
        ("[{'a': 'infinity'::TIMESTAMPTZ}]", None),
        ("[170141183460469231731687303715884105727::HUGEINT]", None),
        ("'infinity'::TIMESTAMP_NS", None),
        ("'24:00:00'::TIME", None),
        ("0.1::DECIMAL(38, 37)", 0.1),
        ("'101'::BIT", None),
        ("uuid()", None),
        ("NULL", None),
    ],
)
def test_any_value_has_an_answer(node: RunningNode, expression: str, value: object) -> None:
    with node.client() as ledger:
        ((found,),) = ledger.sql(f"SELECT {expression} AS v")["rows"]
    if value is not None:
        assert found in (value, str(value))

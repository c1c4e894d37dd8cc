"""Rows that are appended as columns are the rows that their literals would be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.fold_kit import inserting
from projections.fold_kit.inserting import insert
from projections.fold_kit.sql_text import Json, Moment, Sql, Value
from tests.examples import law as law_of

law = law_of(60)
TYPES = ("BIGINT", "INTEGER", "UBIGINT", "DOUBLE", "BOOLEAN", "VARCHAR", "JSON", "TIMESTAMPTZ", "VARCHAR[]", "BIGINT[]")
WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(["'", "\0", "“橘猫”", "null"])
BIGINTS = st.integers(-(2**63), 2**63 - 1)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "BIGINT": BIGINTS,
    "INTEGER": st.integers(-(2**31), 2**31 - 1),
    "UBIGINT": st.integers(0, 2**64 - 1),
    "DOUBLE": st.floats(allow_nan=False, allow_infinity=False),
    "BOOLEAN": st.booleans(),
    "VARCHAR": WORDS,
    "JSON": st.sampled_from(['{"a": 1}', '{"a":[1.50, "橘猫"],"b":null}', "{}", '{"a":1,"a":2}']).map(Json),
    "TIMESTAMPTZ": st.integers(-(2**50), 2**52).map(Moment),
    "VARCHAR[]": st.lists(WORDS, max_size=3),
    "BIGINT[]": st.lists(BIGINTS, max_size=3),
}
ROWS = st.lists(st.tuples(*(st.none() | VALUES[kind] for kind in TYPES)), min_size=1, max_size=12)


@pytest.fixture
def con() -> duckdb.DuckDBPyConnection:
    """As a node's, which has a server for analysts: DuckDB then finds no variable of Python's by its name."""
    return duckdb.connect(config={"enable_external_access": False})


def kept(
    con: duckdb.DuckDBPyConnection, patch: pytest.MonkeyPatch, rows: Sequence[Sequence[Value]], most_literals: int
) -> list[Any]:
    con.execute(f"CREATE OR REPLACE TABLE kept ({', '.join(f'c{at} {kind}' for at, kind in enumerate(TYPES))})")
    patch.setattr(inserting, "MOST_LITERALS", most_literals)
    insert(con, "kept", rows)
    moment = f"c{TYPES.index('TIMESTAMPTZ')}"
    return con.execute(f"SELECT * REPLACE (epoch_us({moment}) AS {moment}) FROM kept").fetchall()


@law
@given(rows=ROWS)
def test_columns_and_literals_leave_the_same_rows(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch, rows: list[tuple[Value, ...]]
) -> None:
    assert kept(con, monkeypatch, rows, 0) == kept(con, monkeypatch, rows, 1_000)


def test_a_column_with_an_expression_of_sql_or_values_of_two_types_is_taken(
    con: duckdb.DuckDBPyConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inserting, "MOST_LITERALS", 0)
    con.execute("CREATE TABLE kept (computed VARCHAR, number DOUBLE)")
    insert(con, "kept", [(Sql("upper('a')"), 1), (None, 0.5)])
    assert con.execute("FROM kept").fetchall() == [("A", 1.0), (None, 0.5)]


def test_no_rows_are_no_statement(con: duckdb.DuckDBPyConnection) -> None:
    insert(con, "there_is_no_such_table", iter(()))

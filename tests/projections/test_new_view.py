"""A new view in a test is a copy; it has what the product creates."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

from projections.engine.duckdb import create_tables, open_new_view, open_view
from tests.empty_views import CREATE_TABLES

OWN = "WHERE database_name = current_database()"
CATALOG = {
    "tables": f"SELECT table_name, sql, comment FROM duckdb_tables() {OWN}",
    "columns": f"SELECT table_name, column_name, data_type, is_nullable, comment FROM duckdb_columns() {OWN}",
    "views": f"SELECT view_name, comment FROM duckdb_views() {OWN} AND NOT internal",
    "macros": f"SELECT function_name, parameters, comment FROM duckdb_functions() {OWN} AND NOT internal",
    "constraints": f"SELECT table_name, constraint_text FROM duckdb_constraints() {OWN}",
}


def contents(con: duckdb.DuckDBPyConnection) -> dict[str, list[Any]]:
    """The catalog of a view, and the rows of each of its tables."""
    catalog = {name: con.execute(f"{query} ORDER BY ALL").fetchall() for name, query in CATALOG.items()}
    return catalog | {f"rows of {name}": con.execute(f"FROM {name}").fetchall() for name, *_ in catalog["tables"]}


@pytest.mark.parametrize("recall_days", [None, 7])
def test_a_copied_view_has_all_that_one_has_which_the_product_creates(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recall_days: int | None
) -> None:
    with closing(open_view(tmp_path / "copied view.duckdb", recall_days)) as con:
        copied = contents(con)
    with closing(open_new_view(tmp_path / "rebuilt.duckdb", memory_limit="1GB", recall_days=recall_days)) as con:
        rebuilt = contents(con)
    monkeypatch.setattr(CREATE_TABLES, create_tables)
    with closing(open_view(tmp_path / "created.duckdb", recall_days)) as con:
        created = contents(con)
    assert created["rows of recall_retention"] != []
    assert all(created[part] for part in CATALOG)
    assert copied == created
    assert rebuilt == created

"""A new view of a test is the copy of an empty one: creating its tables, views and macros takes seven times as long.

A process that is started from nothing creates them. That both come to the same is a test of its own
(tests/projections/test_new_view.py).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from functools import cache
from pathlib import Path

import duckdb

from projections.engine.duckdb import create_tables, transaction
from projections.fold_kit.sql_text import text
from projections.views.recalls import retention

CREATE_TABLES = "projections.engine.duckdb.create_tables"
"""What `copied_from` takes the place of."""


def copied_from(directory: Path) -> Callable[[duckdb.DuckDBPyConnection, int | None], None]:
    """`create_tables` by a copy of an empty view, which the first that is made leaves in a directory."""
    made = cache(_made)

    def create_copied(con: duckdb.DuckDBPyConnection, recall_days: int | None) -> None:
        empty = made(directory / "empty.duckdb")
        ((database,),) = con.execute("SELECT current_database()").fetchall()
        con.execute(f"ATTACH {text(str(empty))} AS empty_view (READ_ONLY)")
        with transaction(con):
            con.execute(f'COPY FROM DATABASE empty_view TO "{database}"')
            retention.begin(con, recall_days)
        con.execute("DETACH empty_view")

    return create_copied


def _made(path: Path) -> Path:
    with closing(duckdb.connect(str(path))) as con:
        con.execute("SET threads = 1")
        create_tables(con, None)
        con.execute("DELETE FROM recall_retention")  # each new view states its own
    return path

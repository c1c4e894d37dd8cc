"""The page of views: tables, views and macros with their comments, read out of an empty database."""

from __future__ import annotations

import duckdb

from docs.generators.tables import GENERATED, table
from projections.analysts.columns import RELATIONS
from projections.engine.duckdb import open_view

_COLUMNS = """
SELECT column_name, data_type, comment FROM duckdb_columns()
WHERE table_name = ? AND NOT internal ORDER BY column_index
"""
_MACROS = """
SELECT DISTINCT function_name, parameters, comment FROM duckdb_functions()
WHERE NOT internal AND function_type = 'table_macro'
    AND NOT starts_with(coalesce(comment, ''), 'Internal') ORDER BY function_name
"""


def views_page() -> str:
    """docs/reference/views.md."""
    con = open_view(None)
    try:
        return "\n".join(
            [
                "# Views\n",
                GENERATED,
                "What an analyst queries, over Quack, with `kledger sql`, or in a snapshot file. The comments "
                "stand in the database too (`FROM duckdb_columns()`). Positions are positions in the log; times "
                "are the times at which the log kept an event, UTC. Relations that are not listed are internal "
                "and may change.\n",
                *(_relation(con, *row) for row in con.execute(RELATIONS).fetchall()),
                "## Table macros\n",
                "Used like tables: `FROM health()`.\n",
                _macros(con),
            ]
        )
    finally:
        con.close()


def _relation(con: duckdb.DuckDBPyConnection, name: str, kind: str, comment: str | None) -> str:
    columns = con.execute(_COLUMNS, [name]).fetchall()
    rows = [(f"`{column}`", f"`{of_type}`", said or "") for column, of_type, said in columns]
    return "\n".join([f"## {name}\n", f"A {kind}. {comment or ''}.\n", table(("column", "type", "meaning"), rows)])


def _macros(con: duckdb.DuckDBPyConnection) -> str:
    rows = [
        (f"`{name}({', '.join(parameters)})`", comment or "")
        for name, parameters, comment in con.execute(_MACROS).fetchall()
    ]
    return table(("macro", "meaning"), rows)

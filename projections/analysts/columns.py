"""Documented relations of the views with their columns, as an editor of SQL completes them."""

from __future__ import annotations

import duckdb

from ledger.event import JsonObject

RELATIONS = """
SELECT name, kind, comment FROM (
    SELECT table_name AS name, 'table' AS kind, comment FROM duckdb_tables() WHERE NOT internal
    UNION ALL
    SELECT view_name, 'view', comment FROM duckdb_views() WHERE NOT internal
) WHERE NOT starts_with(coalesce(comment, ''), 'Internal') ORDER BY name
"""
"""Name, kind and comment of each relation that is for analysts; the others are internal and may change."""
_COLUMNS = """
SELECT table_name, column_name, data_type, comment FROM duckdb_columns() WHERE NOT internal
ORDER BY table_name, column_index
"""


def documented(cursor: duckdb.DuckDBPyConnection) -> list[JsonObject]:
    """Each documented table and view, by name, with its columns."""
    columns: dict[str, list[JsonObject]] = {}
    for relation, name, kind, comment in cursor.execute(_COLUMNS).fetchall():
        columns.setdefault(relation, []).append({"name": name, "type": kind, "comment": comment or ""})
    return [
        {"name": name, "kind": kind, "comment": comment or "", "columns": columns.get(name, [])}
        for name, kind, comment in cursor.execute(RELATIONS).fetchall()
    ]

"""Rows of a query by the names of its columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb

from ledger.event import JsonObject


def named_rows(cursor: duckdb.DuckDBPyConnection, query: str, values: Sequence[Any] = ()) -> list[JsonObject]:
    """All rows of a query with these bound values."""
    rows = cursor.execute(query, list(values)).fetchall()
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in rows]


def first_row(cursor: duckdb.DuckDBPyConnection, query: str, values: Sequence[Any] = ()) -> JsonObject | None:
    """The first row of a query; None when it has none."""
    return next(iter(named_rows(cursor, query, values)), None)

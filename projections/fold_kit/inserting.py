"""Rows of Python values, appended to a table: a few as literals, more of them as columns that DuckDB reads in place."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import duckdb
import pyarrow as pa

from projections.fold_kit.sql_text import Json, Moment, Sql, Value, literal

MOST_LITERALS = 200
"""Values that are written as literals: each is parsed and planned, some 10 us, where columns are planned once."""
_BEYOND_BIGINT = 2**63


def insert(con: duckdb.DuckDBPyConnection, table: str, rows: Iterable[Sequence[Value]]) -> None:
    """Append rows, in the table's column order."""
    listed = list(rows)
    columns = _columns(listed) if sum(map(len, listed)) > MOST_LITERALS else None
    if columns is not None:
        selected = ", ".join(form.format(f"c{number}") for number, (_, form) in enumerate(columns))
        arrays = {f"c{number}": values for number, (values, _) in enumerate(columns)}
        con.from_arrow(pa.table(arrays)).project(selected).insert_into(table)
    elif listed:
        con.execute(f"INSERT INTO {table} VALUES {', '.join(map(_row, listed))}")


def _row(values: Sequence[Value]) -> str:
    return f"({', '.join(map(literal, values))})"


def _columns(rows: Sequence[Sequence[Value]]) -> list[tuple[pa.Array, str]] | None:
    """Each column, with the SQL that reads it; None where one has no form: it is computed, or of several types."""
    columns = []
    for values in zip(*rows, strict=True):
        column = _column(values)
        if column is None:
            return None
        columns.append(column)
    return columns


def _column(values: Sequence[Any]) -> tuple[pa.Array, str] | None:
    kinds = {type(value) for value in values if value is not None}
    if not kinds:
        return pa.nulls(len(values)), "{}"
    kind = kinds.pop()
    if kinds or kind is Sql:
        return None
    if kind is Moment or kind is Json:
        form, of = ("make_timestamptz({})", pa.int64()) if kind is Moment else ("json({})", pa.string())
        return pa.array([None if value is None else value[0] for value in values], of), form
    if kind is list or kind is tuple:
        numbers = any(isinstance(each, int) for value in values if value for each in value[:1])
        return pa.array(values, pa.list_(pa.int64() if numbers else pa.string())), "{}"
    large = kind is int and max(value for value in values if value is not None) >= _BEYOND_BIGINT
    return pa.array(values, pa.uint64() if large else None), "{}"

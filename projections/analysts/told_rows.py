"""Rows of an answer as JSON has them: it knows neither `nan` nor `inf`, which were told as null, like a NULL."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa

from projections.analysts.plain_rows import rows_of


def told_rows(table: pa.Table) -> list[list[Any]]:
    """The rows of a table; `nan`, `inf` and `-inf` are text, as DuckDB writes and reads them."""
    floats = [at for at, field in enumerate(table.schema) if _has_floats(field.type)]
    rows = rows_of(table)
    for row in rows if floats else ():
        for at in floats:
            row[at] = _told(row[at])
    return rows


def _has_floats(kind: pa.DataType) -> bool:
    return pa.types.is_floating(kind) or any(_has_floats(kind.field(at).type) for at in range(kind.num_fields))


def _told(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, list | tuple):
        return [_told(part) for part in value]
    return {name: _told(part) for name, part in value.items()} if isinstance(value, dict) else value

"""Conversion of Arrow tables to rows of Python values; timestamps that Python cannot represent become text.

DuckDB has `infinity`, and years before 1 and after 9999; Python's datetime does not. A row is a list, so that columns
of the same name keep their own values.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

_INFINITE = {2**63 - 1: "infinity", -(2**63 - 1): "-infinity", 2**31 - 1: "infinity", -(2**31 - 1): "-infinity"}


def rows_of(table: pa.Table) -> list[list[Any]]:
    """The rows of a table, each a list of values in the order of its columns."""
    return [list(row) for row in zip(*map(_values, table.columns), strict=True)]


def _values(column: pa.ChunkedArray) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist()
    except (OverflowError, ValueError):  # one is outside of Python's range: convert them one by one
        return [_value(scalar) for scalar in column]
    return values


def _value(scalar: pa.Scalar) -> Any:
    try:
        return scalar.as_py()
    except (OverflowError, ValueError):
        pass
    kind = scalar.type
    if pa.types.is_struct(kind):
        return {name: _value(part) for name, part in scalar.items()}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return [_value(part) for part in scalar.values]
    if pa.types.is_map(kind):
        return [[_value(key), _value(value)] for key, value in zip(*scalar.values.flatten(), strict=True)]
    number = scalar.cast(pa.int32() if pa.types.is_date32(kind) else pa.int64()).as_py()
    unit = "D" if pa.types.is_date32(kind) else kind.unit
    return _INFINITE.get(number) or str(np.array(number).astype(f"datetime64[{unit}]"))

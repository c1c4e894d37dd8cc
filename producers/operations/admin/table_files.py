"""Rows of a query as the bytes of a file for other programs: CSV, Parquet with types, or JSON."""

from __future__ import annotations

import csv
import io
import json
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kledger.answers.admin import Table


_NUMBERS = ("tinyint", "smallint", "int", "bigint", "hugeint", "u", "double", "float", "decimal")


class FileForm(StrEnum):
    """What a file of rows may be."""

    CSV = "csv"
    PARQUET = "parquet"
    JSON = "json"


def encoded(result: Table, form: FileForm) -> bytes:
    """The rows in a form for programs. A value stands there as it is, also where a spreadsheet would calculate it."""
    match form:
        case FileForm.CSV:
            return _csv(result)
        case FileForm.PARQUET:
            return _parquet(result)
        case FileForm.JSON:
            return (json.dumps(result, ensure_ascii=False) + "\n").encode()


def is_number(kind: str) -> bool:
    """Whether a type of a column, as a result states it, is one of numbers."""
    return kind.lower().startswith(_NUMBERS) and kind.lower() != "uuid"


def _csv(result: Table) -> bytes:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(result["columns"])
    rows.writerows([_cell(value) for value in row] for row in result["rows"])
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    """One CSV cell: lists and objects are JSON, NULL is empty."""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return str(value).lower()
    return value


def _parquet(result: Table) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = list(zip(*result["rows"], strict=True)) or [()] * len(result["columns"])
    arrays = [_array(list(values), kind) for values, kind in zip(columns, result["types"], strict=True)]
    out = io.BytesIO()
    pq.write_table(pa.table(arrays, names=_distinct(result["columns"])), out)
    return out.getvalue()


def _array(values: list[Any], kind: str) -> Any:
    """A column in its DuckDB type; types that JSON cannot carry become text, nested values JSON."""
    import pyarrow as pa

    texts = [None if value is None else value if isinstance(value, str) else json.dumps(value) for value in values]
    as_text = pa.array(texts, pa.string())
    try:
        if kind.startswith("timestamp"):
            zone = kind.partition("tz=")[2].rstrip("]") or None
            return as_text.cast(pa.timestamp("us", zone))
        if kind.startswith("decimal128("):
            digits, scale = kind[len("decimal128(") : -1].split(",")
            return as_text.cast(pa.decimal128(int(digits), int(scale)))
        target = pa.type_for_alias(kind)
        if pa.types.is_binary(target) or pa.types.is_interval(target):
            return as_text
        return as_text.cast(target) if pa.types.is_temporal(target) else pa.array(values, target)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return as_text


def _distinct(names: list[str]) -> list[str]:
    """Column names made unique as DuckDB does: `a`, `b`, `a_1`."""
    taken: set[str] = set()
    distinct = []
    for name in names:
        unique, n = name, 0
        while unique.lower() in taken:
            n += 1
            unique = f"{name}_{n}"
        taken.add(unique.lower())
        distinct.append(unique)
    return distinct

"""Rows of a query as the bytes of a file for other programs: CSV, Parquet with types, or JSON."""

from __future__ import annotations

import io
import json
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kledger.answers.admin import Table


_TO_QUOTE = re.compile(r'[",\r\n]')
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
    """RFC 4180 with newlines of this kind; NULL is an empty field, an empty text is `""`.

    Python's csv tells the two apart from 3.12 on.
    """
    lines = [result["columns"], *result["rows"]]
    return "".join(f"{','.join(map(_cell, line))}\n" for line in lines).encode()


def _cell(value: Any) -> str:
    """One CSV cell: lists and objects are JSON."""
    if value is None:
        return ""
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False)
    elif isinstance(value, bool):
        value = str(value).lower()
    text = str(value)
    return text if text and not _TO_QUOTE.search(text) else '"{}"'.format(text.replace('"', '""'))


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
        if pa.types.is_floating(target):  # `nan` and `inf` are text in JSON
            return pa.array([None if value is None else float(value) for value in values], target)
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

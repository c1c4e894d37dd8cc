"""How is the answer to a query written for another program? As CSV, as Parquet with its types, or as JSON."""

from __future__ import annotations

import csv
import io
import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from kledger.answers.admin import Table


class Format(StrEnum):
    """What `kledger sql` writes."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


def format_of(form: Format | None, out: Path | None) -> Format:
    """The format that is asked for, or that the file's name stands for. Raises typer.BadParameter."""
    if form is None:
        ending = "" if out is None else out.suffix.lstrip(".").lower()
        try:
            form = Format(ending) if ending else Format.TABLE
        except ValueError:
            raise typer.BadParameter("name a file .csv, .parquet or .json, or add --format") from None
    if form is Format.TABLE and out is not None:
        raise typer.BadParameter("a table is for the screen: name a file .csv, .parquet or .json, or add --format")
    if form is Format.PARQUET and out is None and sys.stdout.isatty():
        raise typer.BadParameter("Parquet is no text for a screen: add --out FILE")
    return form


def written(found: Table, form: Format) -> bytes:
    """The rows in a format for programs."""
    match form:
        case Format.CSV:
            return _csv(found)
        case Format.PARQUET:
            return _parquet(found)
        case _:
            return (json.dumps(found, ensure_ascii=False) + "\n").encode()


def _csv(found: Table) -> bytes:
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(found["columns"])
    rows.writerows([_cell(value) for value in row] for row in found["rows"])
    return text.getvalue().encode()


def _cell(value: Any) -> Any:
    """What is no single value is JSON in its cell; NULL is an empty one."""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return str(value).lower()
    return value


def _parquet(found: Table) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = list(zip(*found["rows"], strict=True)) or [()] * len(found["columns"])
    arrays = [_array(list(values), kind) for values, kind in zip(columns, found["types"], strict=True)]
    out = io.BytesIO()
    pq.write_table(pa.table(arrays, names=_told_apart(found["columns"])), out)
    return out.getvalue()


def _array(values: list[Any], kind: str) -> Any:
    """A column in its type; one that JSON could not carry is text, nested values are JSON."""
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


def _told_apart(names: list[str]) -> list[str]:
    """Names of which each is there once, as DuckDB makes them: `a`, `b`, `a_1`."""
    taken: set[str] = set()
    made = []
    for name in names:
        unique, n = name, 0
        while unique.lower() in taken:
            n += 1
            unique = f"{name}_{n}"
        taken.add(unique.lower())
        made.append(unique)
    return made

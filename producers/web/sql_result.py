"""The result of a query as a page shows it: so many rows, each value in short, and a chart where there are numbers."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

from markupsafe import Markup

from kledger.answers.admin import Table
from producers.operations.admin.table_files import is_number
from producers.web.figures.bars import bars
from producers.web.rendering import short

MOST_ROWS = 200
MOST_COLUMNS = 40
MOST_BARS = 24
MOST_CHARTED = 6
"""Columns of a result that is drawn: a wide one is a listing, and its first number means nothing beside the others."""
_MOST_VALUE = 200
_MOST_WRITTEN = 14
_SMALL = 0.001


@dataclass(frozen=True, slots=True)
class Column:
    """A column by name and type; numbers stand at the right."""

    name: str
    kind: str
    number: bool


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown of a result; of its `count` rows and `wide` columns, the first ones."""

    columns: list[Column]
    rows: list[list[str | None]]
    count: int
    wide: int
    position: int
    chart: Markup | None


def shown(result: Table) -> Shown:
    """What a page shows of a result."""
    columns = [
        Column(short(name, _MOST_VALUE), kind, is_number(kind))
        for name, kind in zip(result["columns"], result["types"], strict=True)
    ]
    rows = [[_written(value) for value in row[:MOST_COLUMNS]] for row in result["rows"][:MOST_ROWS]]
    return Shown(
        columns[:MOST_COLUMNS], rows, len(result["rows"]), len(columns), result["position"], _chart(columns, result)
    )


def _written(value: object) -> str | None:
    """A value in short; None is NULL."""
    if value is None:
        return None
    if isinstance(value, float) and math.isfinite(value):  # a file has every digit
        return f"{value:.4f}".rstrip("0").rstrip(".") if abs(value) >= _SMALL or not value else f"{value:.4g}"
    return short(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), _MOST_VALUE)


def _chart(columns: list[Column], result: Table) -> Markup | None:
    """The first column as labels, the first numbers after it as bars; None where that would say nothing: the labels
    are missing or the same, there is one row alone, no numbers, or a column for everything."""
    place = next((place for place, column in enumerate(columns) if place and column.number), None)
    labels = [json.dumps(row[0]) for row in result["rows"] if row]
    apart = len(labels) > 1 and len(set(labels)) == len(labels)
    if place is None or not apart or len(columns) > MOST_CHARTED:
        return None
    rows = [
        (_written(row[0]) or "NULL", number, short(_written(row[place]) or "", _MOST_WRITTEN))
        for row in result["rows"][:MOST_BARS]
        if (number := _number(row[place])) is not None
    ]
    return bars(f"{columns[place].name} / {columns[0].name}", rows) if rows else None


def _number(value: object) -> float | None:
    """A number that can be drawn; a decimal comes as text."""
    try:
        number = float(value)  # type: ignore[arg-type]  # whatever a query answers; what is no number is left out
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None

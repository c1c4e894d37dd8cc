"""Cursor pagination: a page of rows, the newest first, with the total and the cursor of the next page.

`next` is the position at which the last row of a full page was created. The page `before` it continues exactly there,
whatever is written meanwhile: a row's position of creation never changes, and new rows have higher ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from ledger.event import JsonObject
from projections.fold_kit.named_rows import named_rows


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows, newest first; `total` is the number of matching rows on all pages."""

    results: list[JsonObject]
    total: int
    next: int | None


@dataclass(frozen=True, slots=True)
class Window:
    """Which page: at most `limit` rows, without the first `offset`, or of those that begin `before` a position."""

    limit: int = 10
    offset: int = 0
    before: int | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """The rows to list: FROM and WHERE of a query, and the parameters of both, in their order."""

    source: str
    where: Sequence[str]
    values: Sequence[Any]


def page_of(cursor: duckdb.DuckDBPyConnection, columns: str, selection: Selection, window: Window) -> Page:
    """A page of rows, each by its columns' names; the relation needs id and created_position."""
    matching = f"FROM {selection.source} WHERE {' AND '.join(selection.where)}"
    earlier = "" if window.before is None else f" AND created_position < {int(window.before)}"
    rows = named_rows(
        cursor,
        f"""SELECT {columns}, created_position {matching}{earlier}
                ORDER BY created_position DESC, id LIMIT {int(window.limit)} OFFSET {int(window.offset)}""",
        list(selection.values),
    )
    ((total,),) = cursor.execute(f"SELECT count(*) {matching}", list(selection.values)).fetchall()
    created = [row.pop("created_position") for row in rows]
    return Page(rows, total, created[-1] if len(rows) == window.limit else None)

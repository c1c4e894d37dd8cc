"""Cursor pagination: a page of rows, the newest first, with the total and the cursor of the next page.

`next` is the position at which the last row of a full page was created. The page `before` it continues exactly there,
whatever is written meanwhile: a row's position of creation never changes, and new rows have higher ones. In another
order, `next` is the offset of the next page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb

from ledger.event import JsonObject
from projections.fold_kit.named_rows import named_rows
from projections.fold_kit.sql_text import among


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows, in their order; `total` is the number of matching rows on all pages."""

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
    """The rows to list: FROM and WHERE of a query, and the parameters of WHERE, in their order.

    `narrow` is another relation with the same rows, and with all that the selection and the order look at.
    """

    source: str
    where: Sequence[str]
    values: Sequence[Any]
    narrow: str | None = None

    def matching(self) -> str:
        """FROM and WHERE."""
        return f"FROM {self.narrow or self.source} WHERE {' AND '.join(self.where)}"


@contextmanager
def one_state(cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Run several queries on one state of the view: what is folded between them is not seen."""
    cursor.execute("BEGIN TRANSACTION READ ONLY")
    try:
        yield
    finally:
        cursor.execute("ROLLBACK")


def page_of(
    cursor: duckdb.DuckDBPyConnection, columns: str, selection: Selection, window: Window, order: str | None = None
) -> Page:
    """A page of rows, each by its columns' names, newest first or by an `order` of columns, the newer of equals first.

    The relation has to have a created_position, another one in each row. Ordered are the positions alone; the columns
    are read of the rows of the page: sorting wide rows took most of the time of a list of 100,000.
    """
    earlier = "" if window.before is None else f"WHERE created_position < {int(window.before)}"
    by = "" if order is None else f", {order} AS sorted"
    first = "" if order is None else "sorted DESC, "
    with one_state(cursor):
        page = cursor.execute(
            f"""WITH matching AS MATERIALIZED (SELECT created_position{by} {selection.matching()})
                SELECT created_position, (SELECT count(*) FROM matching) FROM matching {earlier}
                ORDER BY {first}created_position DESC LIMIT {int(window.limit)} OFFSET {int(window.offset)}""",
            list(selection.values),
        ).fetchall()
        if page:
            total = page[0][1]
        else:
            ((total,),) = cursor.execute(f"SELECT count(*) {selection.matching()}", list(selection.values)).fetchall()
        created = [position for position, _ in page]
        rows = named_rows(
            cursor,
            f"SELECT {columns}, created_position FROM {selection.source} WHERE created_position IN ({among(created)})",
        )
    by_position = {row.pop("created_position"): row for row in rows}
    results = [by_position[position] for position in created]
    if order is None:
        return Page(results, total, created[-1] if len(created) == window.limit else None)
    following = window.offset + len(created)
    return Page(results, total, following if following < total and created else None)

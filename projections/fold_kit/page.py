"""Cursor pagination: a page of rows, the newest first, with the total and the cursor of the next page.

`next` is the position at which the last row of a full page was created. The page `before` it continues exactly there,
whatever is written meanwhile: a row's position of creation never changes, and new rows have higher ones. In another
order, `next` is the offset of the next page.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import duckdb

from ledger.event import JsonObject
from projections.fold_kit.named_rows import named_rows
from projections.fold_kit.sql_text import among_numbers

_MOST_NEWEST = 1_000
"""So many of the newest positions are kept while the matching rows are counted; more are sorted."""

P = ParamSpec("P")
T = TypeVar("T")
Rows = Callable[[duckdb.DuckDBPyConnection, Sequence[int]], list[JsonObject]]
"""Reads the rows that were created at these positions, each with its `created_position`."""


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
    """The rows to list: FROM and WHERE of a query, and the parameters of WHERE, in their order."""

    source: str
    where: Sequence[str]
    values: Sequence[Any]

    def matching(self) -> str:
        """FROM and WHERE."""
        return f"FROM {self.source} WHERE {' AND '.join(self.where)}"


@contextmanager
def one_state(cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Run several queries on one state of the view: what is folded between them is not seen."""
    cursor.execute("BEGIN TRANSACTION READ ONLY")
    try:
        yield
    finally:
        cursor.execute("ROLLBACK")


def in_one_state(
    question: Callable[Concatenate[duckdb.DuckDBPyConnection, P], T],
) -> Callable[Concatenate[duckdb.DuckDBPyConnection, P], T]:
    """A question of several queries, asked on one state of the view."""

    @wraps(question)
    def asked(cursor: duckdb.DuckDBPyConnection, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with one_state(cursor):
            return question(cursor, *args, **kwargs)

    return asked


def page_of(
    cursor: duckdb.DuckDBPyConnection, columns: str, selection: Selection, window: Window, order: str | None = None
) -> Page:
    """A page of rows, each by its columns' names, newest first or by an `order` of columns, the newer of equals first.

    The relation has to have a created_position, another one in each row.
    """
    with one_state(cursor):
        return page_in(cursor, selection, window, partial(_rows, columns, selection.source), order)


def page_in(
    cursor: duckdb.DuckDBPyConnection, selection: Selection, window: Window, rows: Rows, order: str | None = None
) -> Page:
    """The same, of rows that `rows` reads, in the state of the view that the caller has begun.

    Found are the positions alone; the columns are read of the rows of the page: sorting wide rows took most of the time
    of a list of 100,000.
    """
    if order is None and window.offset + window.limit <= _MOST_NEWEST:
        created, total = _newest(cursor, selection, window)
    else:
        created, total = _sorted(cursor, selection, window, order)
    by_position = {row.pop("created_position"): row for row in rows(cursor, created)} if created else {}
    results = [by_position[position] for position in created]
    if order is None:
        return Page(results, total, created[-1] if created and len(created) == window.limit else None)
    following = window.offset + len(created)
    return Page(results, total, following if following < total and created else None)


def _newest(cursor: duckdb.DuckDBPyConnection, selection: Selection, window: Window) -> tuple[list[int], int]:
    """The positions of a page that is near the beginning, and the total: one look at the rows, and nothing sorted."""
    most = window.offset + window.limit
    if not most:
        return [], _count(cursor, selection)
    earlier = "" if window.before is None else f" FILTER (created_position < {int(window.before)})"
    ((newest, total),) = cursor.execute(
        f"SELECT max(created_position, {int(most)}){earlier}, count(*) {selection.matching()}", list(selection.values)
    ).fetchall()
    return sorted(newest or (), reverse=True)[window.offset :], total


def _sorted(
    cursor: duckdb.DuckDBPyConnection, selection: Selection, window: Window, order: str | None
) -> tuple[list[int], int]:
    """The positions of any page, in any order, and the total."""
    earlier = "" if window.before is None else f"WHERE created_position < {int(window.before)}"
    by = "" if order is None else f", {order} AS sorted"
    first = "" if order is None else "sorted DESC, "
    page = cursor.execute(
        f"""WITH matching AS MATERIALIZED (SELECT created_position{by} {selection.matching()})
            SELECT created_position, (SELECT count(*) FROM matching) FROM matching {earlier}
            ORDER BY {first}created_position DESC LIMIT {int(window.limit)} OFFSET {int(window.offset)}""",
        list(selection.values),
    ).fetchall()
    return [position for position, _ in page], page[0][1] if page else _count(cursor, selection)


def _count(cursor: duckdb.DuckDBPyConnection, selection: Selection) -> int:
    ((total,),) = cursor.execute(f"SELECT count(*) {selection.matching()}", list(selection.values)).fetchall()
    return int(total)


def _rows(columns: str, source: str, cursor: duckdb.DuckDBPyConnection, created: Sequence[int]) -> list[JsonObject]:
    at = among_numbers("created_position", created)
    return named_rows(cursor, f"SELECT {columns}, created_position FROM {source} WHERE {at}")

"""Cursor pagination: a page of rows, the newest first, with the total and the cursor of the next page.

`next` is the position at which the last row of a full page was created. The page `before` it continues exactly there,
whatever is written meanwhile: a row's position of creation never changes, and new rows have higher ones. In another
order, `next` is the offset of the next page. A page ends early where it has as many bytes as one answer may have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import duckdb

from ledger import one_answer
from ledger.event import JsonObject
from projections.fold_kit.named_rows import named_rows
from projections.fold_kit.sql_text import among_numbers

_MOST_NEWEST = 1_000
"""So many of the newest positions are kept while the matching rows are counted; more are sorted."""
_FEW, _FIRST, _GROWS, _MOST_MEASURED = 10, 16, 4, 256
"""So few rows are read without a look at their sizes. Those of more are asked for in parts, which grow up to the last
number, as DuckDB holds the texts of a part at once."""

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
    """Which page: at most `limit` rows, without the first `offset`, or of those that begin `before` a position.

    `taken` bytes of the answer are used already.
    """

    limit: int = 10
    offset: int = 0
    before: int | None = None
    taken: int = 0


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
    cursor: duckdb.DuckDBPyConnection,
    columns: str,
    selection: Selection,
    window: Window,
    order: str | None = None,
    *,
    texts: Sequence[str],
) -> Page:
    """A page of rows, each by its columns' names, newest first or by an `order` of columns, the newer of equals first.

    The relation has to have a created_position, another one in each row; `texts` are its columns that may be long.
    """
    with one_state(cursor):
        rows = partial(_rows, columns, selection.source)
        return page_in(cursor, selection, window, rows, order, measured=Measured(selection.source, bytes_of(texts)))


@dataclass(frozen=True, slots=True)
class Measured:
    """Where the sizes of rows are: a relation, the bytes of a row (SQL), and the column that tells which row it is."""

    source: str
    size: str
    at: str = "created_position"


def bytes_of(texts: Iterable[str]) -> str:
    """The bytes of the values of these columns, which may be long (SQL)."""
    return " + ".join(f"coalesce(strlen({name}::VARCHAR), 0)" for name in texts)


def page_in(
    cursor: duckdb.DuckDBPyConnection,
    selection: Selection,
    window: Window,
    rows: Rows,
    order: str | None = None,
    *,
    measured: Measured,
) -> Page:
    """The same, of rows that `rows` reads, in the state of the view that the caller has begun.

    Found are the positions alone; the columns are read of the rows of the page: sorting wide rows took most of the time
    of a list of 100,000.
    """
    if order is None and window.offset + window.limit <= _MOST_NEWEST:
        created, total = _newest(cursor, selection, window)
    else:
        created, total = _sorted(cursor, selection, window, order)
    read = fitting_rows(cursor, measured, created, window.taken)
    by_position = {row.pop("created_position"): row for row in rows(cursor, read)} if read else {}
    results = list(one_answer.fitting([by_position[position] for position in read], window.taken))
    if order is None:
        goes_on = len(results) < len(created) or len(created) == window.limit
        return Page(results, total, read[len(results) - 1] if results and goes_on else None)
    following = window.offset + len(results)
    return Page(results, total, following if following < total and results else None)


def fitting_rows(
    cursor: duckdb.DuckDBPyConnection, measured: Measured, positions: Sequence[int], taken: int = 0
) -> Sequence[int]:
    """The first of these positions whose rows have about as many bytes as fit into an answer.

    What does not fit is never read whole: a thousand rows may have a gigabyte.
    """
    if len(positions) <= _FEW:
        return positions
    left, begin, most = one_answer.MOST_BYTES - taken, 0, _FIRST
    while begin < len(positions):
        part = positions[begin : begin + most]
        at = among_numbers(measured.at, part)
        rows = cursor.execute(f"SELECT {measured.at}, {measured.size} FROM {measured.source} WHERE {at}").fetchall()
        sizes = dict(rows)
        for number, position in enumerate(part, begin):
            left -= sizes.get(position, 0)
            if left < 0:
                return positions[: max(one_answer.LEAST, number)]
        begin, most = begin + len(part), min(most * _GROWS, _MOST_MEASURED)
    return positions


def latest(
    cursor: duckdb.DuckDBPyConnection, measured: Measured, found: str, values: Sequence[Any], columns: str
) -> tuple[list[JsonObject], int | None]:
    """The latest of the rows that `found` (FROM and WHERE) has and that fit into an answer, the oldest first; and the
    position before which the others are.

    Each has another position in the column that tells which row it is.
    """
    at = measured.at
    positions = [row[0] for row in cursor.execute(f"SELECT {at} {found} ORDER BY {at} DESC", list(values)).fetchall()]
    read = fitting_rows(cursor, measured, positions)
    where = among_numbers(at, read)
    rows = named_rows(cursor, f"SELECT {columns} FROM {measured.source} WHERE {where} ORDER BY {at}") if read else []
    shown = list(one_answer.last_fitting(rows))
    return shown, positions[len(shown) - 1] if len(shown) < len(positions) else None


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

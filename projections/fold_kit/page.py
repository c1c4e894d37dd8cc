"""What is a page of a list? Rows in the order of their creation, how many there are in all, and where the next begins.

`next` is the position at which the last row of a full page was created. A page `before` it goes on exactly there, with
whatever is written, changed or withdrawn meanwhile: a position of creation never changes, and new ones are higher.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from ledger.event import JsonObject


@dataclass(frozen=True, slots=True)
class Page:
    """Some rows, newest first; `total` is how many fit, on all pages."""

    results: list[JsonObject]
    total: int
    next: int | None


@dataclass(frozen=True, slots=True)
class Asked:
    """Which rows of a relation are listed: FROM and WHERE, and the values of both, in their order."""

    source: str
    where: Sequence[str]
    values: Sequence[Any]


def page_of(
    cursor: duckdb.DuckDBPyConnection,
    columns: str,
    asked: Asked,
    *,
    limit: int,
    offset: int = 0,
    before: int | None = None,
) -> tuple[list[Sequence[Any]], int, int | None]:
    """The rows of a page, the total, and where the next page begins; the relation has id and created_position."""
    matching = f"FROM {asked.source} WHERE {' AND '.join(asked.where)}"
    earlier = "" if before is None else f" AND created_position < {int(before)}"
    rows = cursor.execute(
        f"""SELECT {columns}, created_position {matching}{earlier}
            ORDER BY created_position DESC, id LIMIT {int(limit)} OFFSET {int(offset)}""",
        list(asked.values),
    ).fetchall()
    counted = cursor.execute(f"SELECT count(*) {matching}", list(asked.values)).fetchone()
    return [row[:-1] for row in rows], int(counted[0]) if counted else 0, rows[-1][-1] if len(rows) == limit else None

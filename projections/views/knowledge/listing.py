"""List of items: a page of those that the caller sees, newest first, with the total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import duckdb

from kledger.contract.scopes import Caller
from projections.fold_kit.page import Page, Selection, Window, page_of
from projections.views.knowledge.ask import ITEM_COLUMNS, item_of, seen_by
from projections.views.knowledge.lives import alive


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which items are listed; `types`, `scopes` and `visibility` are each any-of."""

    types: Sequence[str] = ()
    scopes: Sequence[str] = ()
    owner: str | None = None
    visibility: Sequence[str] = ()
    status: str = "active"


def items(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    caller: Caller,
    wanted: Wanted,
    window: Window,
    as_of: int | None = None,
    moment: datetime | None = None,
) -> Page:
    """A page of the items that the caller sees.

    A short memory that is over at `moment` (now, where none is given) is not active, also before the node says so.
    """
    seen, seen_values = seen_by(caller, "k.")
    where, values = ["k.org = ?", seen], [org, *seen_values]
    for column, any_of in (("types", wanted.types), ("scopes", wanted.scopes)):
        if any_of:
            where.append("(" + " OR ".join(f"list_contains(k.{column}, ?)" for _ in any_of) + ")")
            values += any_of
    if wanted.owner is not None:
        where.append("k.owner = ?")
        values.append(wanted.owner)
    if wanted.visibility:
        where.append("k.visibility IN (" + ", ".join("?" for _ in wanted.visibility) + ")")
        values += wanted.visibility
    if wanted.status != "all":
        where.append("k.status = ?")
        values.append(wanted.status)
    if wanted.status == "active":
        where.append(alive(cursor, org, "k", moment or datetime.now(UTC), as_of))
    source = "knowledge AS k"
    first: list[Any] = []
    if as_of is not None:
        source, first = "knowledge_at(?) AS k", [as_of]
        where.append(
            f"k.id IN (SELECT now.id FROM knowledge AS now WHERE now.org = ? AND {seen_by(caller, 'now.')[0]})"
        )
        values += [org, *seen_values]
    selection = Selection(source, where, [*first, *values])
    page = page_of(cursor, ITEM_COLUMNS, selection, window)
    return replace(page, results=[{**item_of(row), "status": row["status"]} for row in page.results])

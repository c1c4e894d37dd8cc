"""List of items: a page of those that the caller sees, newest first, with the total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import duckdb

from kledger.contract.scopes import Caller
from projections.fold_kit.page import Page, Selection, page_of
from projections.views.knowledge.ask import ITEM_COLUMNS, item_of, seen_by
from projections.views.knowledge.lives import alive


def items(
    cursor: duckdb.DuckDBPyConnection,
    org: str,
    caller: Caller,
    *,
    limit: int,
    offset: int = 0,
    before: int | None = None,
    types: Sequence[str] = (),
    scopes: Sequence[str] = (),
    owner: str | None = None,
    visibility: Sequence[str] = (),
    status: str = "active",
    as_of: int | None = None,
    moment: datetime | None = None,
) -> Page:
    """A page of the items that the caller sees; `types`, `scopes` and `visibility` are each any-of.

    A short memory that is over at `moment` (now, where none is given) is not active, also before the node says so.
    """
    seen, seen_values = seen_by(caller, "k.")
    where, values = ["k.org = ?", seen], [org, *seen_values]
    for column, wanted in (("types", types), ("scopes", scopes)):
        if wanted:
            where.append("(" + " OR ".join(f"list_contains(k.{column}, ?)" for _ in wanted) + ")")
            values += wanted
    if owner is not None:
        where.append("k.owner = ?")
        values.append(owner)
    if visibility:
        where.append("k.visibility IN (" + ", ".join("?" for _ in visibility) + ")")
        values += visibility
    if status != "all":
        where.append("k.status = ?")
        values.append(status)
    if status == "active":
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
    page = page_of(cursor, ITEM_COLUMNS, selection, limit=limit, offset=offset, before=before)
    return replace(page, results=[{**item_of(row), "status": row["status"]} for row in page.results])

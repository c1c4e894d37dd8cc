"""Goals of some owners in brief, the one that was focused last first."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from ledger.event import JsonObject
from projections.fold_kit.erased import erased_at
from projections.fold_kit.named_rows import named_rows
from projections.views.access import LISTED, listed
from projections.views.times import rfc3339


def goals(
    cursor: duckdb.DuckDBPyConnection, org: str, owners: Sequence[str] | None, limit: int, offset: int
) -> tuple[list[JsonObject], int]:
    """A page of the goals of these owners (None: of all), and how many there are; without those that were erased."""
    whose, values = ("", []) if owners is None else (f"AND owner IN ({LISTED})", [listed(owners)])
    counted = f"FROM goals WHERE org = ? {whose} AND NOT ({erased_at('position', 'description')})"
    rows = named_rows(
        cursor,
        f"""SELECT goal_id, owner, description, len(items) AS items, focuses, epoch_us(created_at) AS created_at,
                epoch_us(updated_at) AS focused_at, position, count(*) OVER () AS total
            {counted} ORDER BY position DESC LIMIT ? OFFSET ?""",
        [org, *values, limit, offset],
    )
    if rows:
        total = rows[0]["total"]
    else:  # a page behind the last one
        (total,) = cursor.execute(f"SELECT count(*) {counted}", [org, *values]).fetchall()[0]
    times = ("created_at", "focused_at")
    return [{**row, **{name: rfc3339(row[name]) for name in times}} for row in map(_without_total, rows)], total


def _without_total(row: JsonObject) -> JsonObject:
    return {name: value for name, value in row.items() if name != "total"}

"""The entity in whose name a caller judges items, and the scope through which it reads them."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from kledger.contract.scopes import Caller
from ledger.readers import Judge, judge_of, readers
from projections.views.access import LISTED, listed, seen_by


def judges(cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, ids: Sequence[str]) -> dict[str, Judge]:
    """The entity and scope of a verdict by the caller, for each of `ids` that the caller sees and may judge."""
    seen, values = seen_by(caller)
    rows = cursor.execute(
        f"SELECT id, scopes, shared_with, owner FROM knowledge WHERE org = ? AND id IN ({LISTED}) AND {seen}",
        [org, listed(ids), *values],
    ).fetchall()
    by_item = {row[0]: judge_of(caller, readers(*row[1:])) for row in rows}
    return {item_id: judge for item_id, judge in by_item.items() if judge is not None}

"""Query of the latest traces."""

from __future__ import annotations

import duckdb

from kledger.contract.scopes import Caller
from ledger.event import JsonObject
from projections.fold_kit.named_rows import named_rows
from projections.fold_kit.recalls import counts
from projections.views.lineage.ask import readable_events
from projections.views.times import with_times

MOST_ACTORS = 5
_LOOKS = f"""SELECT position FROM recall_events WHERE NOT {counts("d.")}
    UNION ALL SELECT position FROM recall_remains WHERE NOT {counts()}"""


def traces(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, limit: int, before: int | None = None
) -> list[JsonObject]:
    """The traces of events that the caller may know of, the latest first; `before` narrows to those that ended before a
    position. Who looks at a page causes nothing: looks are left out."""
    may, values = readable_events(org, caller)
    earlier = "" if before is None else f"HAVING max(e.position) < {int(before)}"
    rows = named_rows(
        cursor,
        f"""SELECT e.trace_id, count(*) AS events, list_sort(list(DISTINCT e.actor))[:{MOST_ACTORS}] AS actors,
            epoch_us(min(e.stream_time)) AS began, epoch_us(max(e.stream_time)) AS ended, max(e.position) AS position
        FROM events AS e
        WHERE e.org = ? AND e.trace_id IS NOT NULL AND {may}
            AND e.position NOT IN ({_LOOKS})
        GROUP BY e.trace_id {earlier} ORDER BY position DESC LIMIT {int(limit)}""",
        [org, *values],
    )
    return [with_times(row, "began", "ended") for row in rows]

"""Query of the sizes of events, by entity."""

from __future__ import annotations

import duckdb

from ledger.events.recall import RecallServed


def event_bytes(cursor: duckdb.DuckDBPyConnection, after: int, upto: int) -> dict[str, int]:
    """Bytes of the data of the accepted events between two positions, by the kind of entity."""
    rows = cursor.execute(
        f"""SELECT entity, sum(bytes)::BIGINT FROM (
                SELECT position, entity, strlen(data::VARCHAR) AS bytes FROM events WHERE data IS NOT NULL
                UNION ALL SELECT position, '{RecallServed.entity()}', bytes FROM recall_remains
            ) WHERE position > {int(after)} AND position <= {int(upto)} GROUP BY entity"""
    ).fetchall()
    return dict(rows)

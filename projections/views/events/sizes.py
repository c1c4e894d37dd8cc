"""Query of the sizes of events, by entity."""

from __future__ import annotations

import duckdb


def event_bytes(cursor: duckdb.DuckDBPyConnection, after: int, upto: int) -> dict[str, int]:
    """Bytes of the data of the accepted events between two positions, by the kind of entity."""
    rows = cursor.execute(
        f"""SELECT entity, sum(strlen(data::VARCHAR))::BIGINT FROM events
            WHERE position > {int(after)} AND position <= {int(upto)} GROUP BY entity"""
    ).fetchall()
    return dict(rows)

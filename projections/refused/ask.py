"""Why do events not count? The question that `refused_events` answers for whoever watches a node."""

from __future__ import annotations

import duckdb


def refused_by_code(con: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """How many events were refused, by code."""
    rows = con.execute("SELECT code, count(*) FROM refused_events GROUP BY code ORDER BY code").fetchall()
    return {str(code): int(count) for code, count in rows}

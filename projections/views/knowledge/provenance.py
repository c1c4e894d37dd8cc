"""Provenance of an item's current state: the log positions of its versions and of its cases, from the views."""

from __future__ import annotations

import duckdb


def positions_behind(cursor: duckdb.DuckDBPyConnection, org: str, item_id: str) -> list[int]:
    """The log positions of every event behind an item's current state, in order; none when there is no such item.

    Its versions (saved, revised, scored, retired, restored) and the ratings that its counts are made of.
    """
    rows = cursor.execute(
        """SELECT valid_from AS position FROM knowledge_versions WHERE org = ? AND id = ?
           UNION SELECT position FROM feedback WHERE org = ? AND knowledge_id = ?
           ORDER BY 1""",
        [org, item_id, org, item_id],
    ).fetchall()
    return [int(position) for (position,) in rows]

"""End of versions in the row-by-row fold: sets position and time of the event that replaced each."""

from __future__ import annotations

from collections.abc import Iterable

import duckdb

from projections.fold_kit.decisions import Counted
from projections.fold_kit.sql_text import Moment, literal


def end_versions(con: duckdb.DuckDBPyConnection, table: str, counted: Iterable[Counted]) -> None:
    """End the versions in `table` that these events close."""
    ends = ", ".join(
        f"({c.closes}, {c.position}, {literal(Moment(c.stored_us))})" for c in counted if c.closes is not None
    )
    if ends:
        con.execute(f"""
            UPDATE {table} SET valid_to = e.position, valid_to_time = e.moment
            FROM (VALUES {ends}) e(closes, position, moment) WHERE {table}.valid_from = e.closes
        """)

"""Queries of `refused_events`, for the operator."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from ledger import one_answer
from ledger.event import JsonObject
from projections.fold_kit.named_rows import named_rows
from projections.fold_kit.sql_text import among
from projections.views.times import with_times

MOST_BODY = 2_000


def refused_events(
    cursor: duckdb.DuckDBPyConnection, *, after: int = 0, limit: int = 100, code: str | None = None
) -> tuple[list[JsonObject], bool]:
    """The refused events after a position, in order: position, time, subject, event_id, type, code, reason, body.

    As many as fit into an answer, and whether that is fewer than there are within the limit.

    `body` is cut after MOST_BODY characters; `refused_events` has the whole of it.
    """
    rows = named_rows(
        cursor,
        f"""SELECT position, epoch_us(time) AS time, subject, event_id, type, code, reason,
                left(body, {MOST_BODY}) AS body
            FROM refused_events WHERE position > ? AND (? IS NULL OR code = ?) ORDER BY position LIMIT ?""",
        [after, code, code, limit],
    )
    shown = one_answer.fitting(rows)
    return [with_times(row, "time") for row in shown], len(shown) < len(rows)


def refusal_among(cursor: duckdb.DuckDBPyConnection, positions: Sequence[int]) -> tuple[str, str] | None:
    """Code and reason of the first of these events that was refused; None where none was."""
    refused = refusals_among(cursor, positions)
    return refused[min(refused)] if refused else None


def refusals_among(cursor: duckdb.DuckDBPyConnection, positions: Sequence[int]) -> dict[int, tuple[str, str]]:
    """Code and reason of each of these events that was refused, by its position."""
    rows = cursor.execute(
        f"SELECT position, code, reason FROM refused_events WHERE position IN ({among(positions)})"
    ).fetchall()
    return {position: (code, reason) for position, code, reason in rows}


def refused_by_code(con: duckdb.DuckDBPyConnection) -> dict[str, int]:
    """How many events were refused, by code."""
    rows = con.execute("SELECT code, count(*) FROM refused_events GROUP BY code ORDER BY code").fetchall()
    return {str(code): int(count) for code, count in rows}

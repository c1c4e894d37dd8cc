"""Query of the items that came of a session."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from kledger.contract.scopes import Caller
from ledger.event import JsonObject
from ledger.events.knowledge import KnowledgeSaved
from projections.fold_kit.named_rows import named_rows
from projections.views.access import LISTED, listed, readable_by
from projections.views.knowledge.ask import MOST_TASK
from projections.views.times import with_times

MOST_SAVED = 500
"""Items in one answer."""


def saved_in(
    cursor: duckdb.DuckDBPyConnection, org: str, caller: Caller, owner: str, session_id: str, messages: Sequence[str]
) -> list[JsonObject]:
    """The items whose save names one of these messages, or the session: as its trace, or as the memory's session.

    In the order of the log, one more than MOST_SAVED at most. What names another session of this owner, as its trace or
    as the memory's, and not this one, is left out: ids of messages are unique in a session alone.
    """
    may, values = readable_by(caller, "k.")
    refs = [*(f"message:{each}" for each in messages), f"trace:{session_id}"]
    rows = named_rows(
        cursor,
        f"""
        WITH named AS MATERIALIZED (
            SELECT position, any_value(substr(ref, 9)) FILTER (relation = 'message') AS message_id
            FROM lineage WHERE org = ? AND event_type = '{KnowledgeSaved.name}' AND ref IN ({LISTED}) GROUP BY position
        ), elsewhere AS (
            SELECT l.position FROM lineage AS l JOIN named USING (position)
            LEFT JOIN (SELECT DISTINCT session_id FROM session_events WHERE org = ? AND owner = ?) AS s
                ON l.ref = 'trace:' || s.session_id
            WHERE l.relation = 'trace' GROUP BY l.position
            HAVING count(s.session_id) > 0 AND NOT coalesce(bool_or(s.session_id = ?), false)
        )
        SELECT k.id, left(k.task, {MOST_TASK}) AS task, k.status, k.owner, n.message_id,
            k.created_position AS position, epoch_us(k.created_at) AS time
        FROM knowledge AS k LEFT JOIN named AS n ON n.position = k.created_position
        WHERE k.org = ? AND {may}
            AND coalesce(k.memory->>'$.session' = ?, n.position IS NOT NULL AND n.position NOT IN (FROM elsewhere))
        ORDER BY k.created_position LIMIT {MOST_SAVED + 1}
        """,
        [org, listed(refs), org, owner, session_id, org, *values, session_id],
    )
    return [with_times(row, "time") for row in rows]

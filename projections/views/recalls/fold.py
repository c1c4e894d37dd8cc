"""Fold of recalls: one row for each item served, with the actor, the trace, and the position of the view."""

from __future__ import annotations

import duckdb

from ledger.events.recall import RecallServed
from projections.fold_kit.decisions import Counted
from projections.fold_kit.sql_text import Moment, Value, insert
from projections.fold_kit.workbench import Facts, Workbench, table_of
from projections.views.recalls.ranked import EACH_ITEM, RANKED_COLUMNS, ranked

TABLES = """
CREATE TABLE recalls (
    position BIGINT NOT NULL, time TIMESTAMPTZ NOT NULL, recall_id VARCHAR NOT NULL, org VARCHAR NOT NULL,
    kind VARCHAR NOT NULL, query VARCHAR NOT NULL, rank INTEGER, item_id VARCHAR, item_version BIGINT,
    relevance DOUBLE, actor VARCHAR NOT NULL, trace_id VARCHAR, message_id VARCHAR,
    view_position BIGINT NOT NULL, match DOUBLE, policy VARCHAR, session VARCHAR, language VARCHAR, intent VARCHAR
);
COMMENT ON TABLE recalls IS 'Items that were served; a recall that served none has one row without an item';
COMMENT ON COLUMN recalls.kind IS
    'search, startup, focus, recall (for a message), page (a look, which counts for nothing)';
COMMENT ON COLUMN recalls.rank IS '1 is the best';
COMMENT ON COLUMN recalls.view_position IS 'Log position that the answer knew';
COMMENT ON COLUMN recalls.match IS 'The share of the query that the item covers, 0 to 1; null before it was recorded';
COMMENT ON COLUMN recalls.policy IS 'Names the settings that ranked';
COMMENT ON COLUMN recalls.session IS 'The session in which a message was answered';
COMMENT ON COLUMN recalls.language IS 'Of the text that was served';
COMMENT ON COLUMN recalls.intent IS 'new_task, follow_up, bug_fix, preference, cross_agent; of a recall by a message';
"""


def fold(bench: Workbench, facts: Facts) -> None:
    """Append what the batch's recalls served."""
    if RecallServed not in facts:
        return
    bench.run(f"""
        INSERT INTO recalls
        SELECT position, stream_time, entity_id, org, d.kind, d.query, {RANKED_COLUMNS},
            actor, trace_id, message_id, d.view_position,
            d.ranking.matches[n], d.ranking.policy, d.ranking.session, d.ranking.language, d.ranking.intent
        FROM {table_of(RecallServed)}
        {EACH_ITEM}
    """)


def fold_few(con: duckdb.DuckDBPyConnection, counted: list[Counted]) -> None:
    """The same for a few events."""
    insert(
        con,
        "recalls",
        (
            (
                *(c.position, Moment(c.stored_us), c.entity_id, c.org, fact.kind, fact.query),
                *item,
                *(c.envelope.actor, c.trace_id, c.message_id, fact.view_position),
                *_how(fact, rank),
            )
            for c in counted
            if isinstance(fact := c.fact, RecallServed)
            for rank, item in enumerate(ranked(fact.items))
        ),
    )


def _how(fact: RecallServed, rank: int) -> tuple[Value, ...]:
    """How the item of this rank (from 0) was ranked: match, policy, session, language, intent."""
    if (ranking := fact.ranking) is None:
        return (None,) * 5
    match = ranking.matches[rank] if rank < len(ranking.matches) else None
    return match, ranking.policy, ranking.session, ranking.language, ranking.intent

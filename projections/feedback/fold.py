"""Where did an item help, where did it harm? One row a case, never changed (mission K3)."""

from __future__ import annotations

import duckdb

from ledger.events.knowledge import KnowledgeRated
from projections.ruling import Counted
from projections.sql_text import Moment, insert
from projections.workbench import Facts, Workbench, table_of

TABLES = """
CREATE TABLE feedback (
    position BIGINT NOT NULL, time TIMESTAMPTZ NOT NULL, event_id VARCHAR NOT NULL, org VARCHAR NOT NULL,
    knowledge_id VARCHAR NOT NULL, verdict VARCHAR NOT NULL, task VARCHAR, query VARCHAR, outcome VARCHAR,
    reason VARCHAR, case_time VARCHAR, actor VARCHAR NOT NULL, trace_id VARCHAR, message_id VARCHAR
);
COMMENT ON TABLE feedback IS 'Every case in which an item helped or harmed';
COMMENT ON COLUMN feedback.time IS 'When the log kept it';
COMMENT ON COLUMN feedback.verdict IS 'helpful or harmful';
COMMENT ON COLUMN feedback.case_time IS 'When the case happened, as the rater wrote it';
"""


def fold(bench: Workbench, facts: Facts) -> None:
    """Append the cases of the batch."""
    if KnowledgeRated not in facts:
        return
    bench.run(f"""
        INSERT INTO feedback
        SELECT position, stream_time, event_id, org, entity_id, d.verdict, d."case".task, d."case".query,
            d."case".outcome, d."case".reason, d."case".timestamp, actor, trace_id, message_id
        FROM {table_of(KnowledgeRated)}
    """)


def fold_few(con: duckdb.DuckDBPyConnection, counted: list[Counted]) -> None:
    """The same, of a few events."""
    insert(
        con,
        "feedback",
        (
            (
                *(c.position, Moment(c.stored_us), c.envelope.id, c.org, c.entity_id, fact.verdict),
                *(fact.case.task, fact.case.query, fact.case.outcome, fact.case.reason, fact.case.timestamp),
                *(c.envelope.actor, c.trace_id, c.message_id),
            )
            for c in counted
            if isinstance(fact := c.fact, KnowledgeRated)
        ),
    )

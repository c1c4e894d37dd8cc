"""Fold of verdicts and confirmations: one row for each case, never changed.

A case that names a trace, or comes from one, earns credit only when the item was served to that trace before
(`recalls`, without looks at a page): only then it is added to the evidence in the item's narrow row.
"""

from __future__ import annotations

import duckdb

from ledger.events.knowledge import KnowledgeConfirmed, KnowledgeRated
from projections.fold_kit.decisions import Counted
from projections.fold_kit.recalls import counts
from projections.fold_kit.sql_text import Moment, Value, among, insert, literal
from projections.fold_kit.workbench import Facts, Workbench, table_of
from projections.views.knowledge.evidence import OPPOSING, SUPPORTING

TABLES = """
CREATE TABLE feedback (
    position BIGINT NOT NULL, time TIMESTAMPTZ NOT NULL, event_id VARCHAR NOT NULL, org VARCHAR NOT NULL,
    knowledge_id VARCHAR NOT NULL, verdict VARCHAR NOT NULL, task VARCHAR, query VARCHAR, outcome VARCHAR,
    reason VARCHAR, case_time VARCHAR, actor VARCHAR NOT NULL, trace_id VARCHAR, message_id VARCHAR,
    credit VARCHAR NOT NULL
);
COMMENT ON TABLE feedback IS 'Every case in which an item helped or harmed, or was confirmed';
COMMENT ON COLUMN feedback.time IS 'When the log kept it';
COMMENT ON COLUMN feedback.verdict IS 'helpful, harmful or confirmed';
COMMENT ON COLUMN feedback.case_time IS 'When the case happened, as the rater wrote it';
COMMENT ON COLUMN feedback.trace_id IS 'The case''s own; where it names none, the one that its event is of';
COMMENT ON COLUMN feedback.credit IS
    'served: to that trace, or the one that its event is of, before; not_served: it never was; untraced: there is none';
"""

_RATED = (KnowledgeRated, KnowledgeConfirmed)
_SERVED = f"""
SELECT DISTINCT f.position FROM ({{rated}}) f(position, org, knowledge_id, trace_id)
JOIN recalls r ON r.org = f.org AND r.trace_id = f.trace_id AND r.item_id = f.knowledge_id AND r.position < f.position
    AND {counts("r.")}
"""
_COUNT = f"""
UPDATE knowledge_state SET supporting = knowledge_state.supporting + f.supporting,
    opposing = knowledge_state.opposing + f.opposing
FROM (
    SELECT org, knowledge_id, {SUPPORTING} AS supporting, {OPPOSING} AS opposing
    FROM feedback WHERE position IN ({{batch}}) GROUP BY org, knowledge_id
) f WHERE knowledge_state.id = f.knowledge_id AND knowledge_state.org = f.org
"""


def fold(bench: Workbench, facts: Facts) -> None:
    """Append the cases of the batch, with their credit, and count them as evidence."""
    rated = [fact for fact in _RATED if fact in facts]
    for fact in rated:
        verdict = "d.verdict" if fact is KnowledgeRated else "'confirmed'"
        own = {name: f"coalesce(nullif(d.\"case\".{name}, ''), {name})" for name in ("trace_id", "message_id")}
        traces = " UNION ALL ".join(
            f"SELECT position, org, entity_id, {trace} FROM {table_of(fact)}" for trace in ("trace_id", own["trace_id"])
        )
        served = _SERVED.format(rated=traces)
        bench.run(f"""
            INSERT INTO feedback
            SELECT position, stream_time, event_id, org, entity_id, {verdict}, d."case".task, d."case".query,
                d."case".outcome, d."case".reason, d."case".timestamp, actor, {own["trace_id"]}, {own["message_id"]},
                CASE WHEN trace_id IS NULL THEN 'untraced' WHEN position IN ({served}) THEN 'served'
                    ELSE 'not_served' END
            FROM {table_of(fact)}
        """)
    if rated:
        bench.run(_COUNT.format(batch=" UNION ALL ".join(f"SELECT position FROM {table_of(fact)}" for fact in rated)))


def fold_few(con: duckdb.DuckDBPyConnection, counted: list[Counted]) -> None:
    """The same for a few events."""
    rated = [(c, c.fact) for c in counted if isinstance(c.fact, _RATED)]
    if not rated:
        return
    served = _served(con, [c for c, _ in rated])
    insert(
        con,
        "feedback",
        (
            (
                *(c.position, Moment(c.stored_us), c.envelope.id, c.org, c.entity_id),
                fact.verdict if isinstance(fact, KnowledgeRated) else "confirmed",
                *(fact.case.task, fact.case.query, fact.case.outcome, fact.case.reason, fact.case.timestamp),
                *(c.envelope.actor, fact.case.trace_id or c.trace_id, fact.case.message_id or c.message_id),
                "untraced" if not c.trace_id else "served" if c.position in served else "not_served",
            )
            for c, fact in rated
        ),
    )
    con.execute(_COUNT.format(batch=among(c.position for c, _ in rated)))


def _served(con: duckdb.DuckDBPyConnection, rated: list[Counted]) -> set[int]:
    """The positions of those cases whose item was served before to one of their traces."""
    traced: list[tuple[Value, ...]] = [
        (c.position, c.org, c.entity_id, trace) for c in rated for trace in c.named("trace_id")
    ]
    if not traced:
        return set()
    values = ", ".join(f"({', '.join(map(literal, each))})" for each in traced)
    return {position for (position,) in con.execute(_SERVED.format(rated=f"VALUES {values}")).fetchall()}

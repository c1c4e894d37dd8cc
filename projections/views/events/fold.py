"""Fold of accepted events into `events`, one row each.

Rows of recalls are those of another table (projections/views/recalls/tables.py); `events` shows all.
"""

from __future__ import annotations

import duckdb

from ledger.events.recall import RecallServed
from projections.fold_kit.decisions import Counted
from projections.fold_kit.inserting import insert
from projections.fold_kit.sql_text import ALL_DIFFERENT, Json, Moment
from projections.fold_kit.workbench import Facts, Workbench, table_of
from projections.views.recalls.tables import AS_EVENTS

TABLES = f"""
CREATE TABLE other_events (
    position BIGINT NOT NULL, time TIMESTAMPTZ NOT NULL, stream_time TIMESTAMPTZ NOT NULL,
    event_id VARCHAR {ALL_DIFFERENT} NOT NULL, type VARCHAR NOT NULL, version INTEGER NOT NULL,
    org VARCHAR NOT NULL, entity VARCHAR NOT NULL, entity_id VARCHAR {ALL_DIFFERENT} NOT NULL,
    actor VARCHAR NOT NULL, trace_id VARCHAR, message_id VARCHAR {ALL_DIFFERENT},
    causation_id VARCHAR, correlation_id VARCHAR, traceparent VARCHAR, source VARCHAR NOT NULL,
    data JSON {ALL_DIFFERENT} NOT NULL
);
COMMENT ON TABLE other_events IS 'Internal: the accepted events that are no recalls; read the view events';
CREATE VIEW events AS FROM other_events UNION ALL {AS_EVENTS};
COMMENT ON VIEW events IS 'Every accepted event, one row each, in the order of the log. Of a recall past its retention,
which a node may set, ids but that of its trace are null, and so is its data';
COMMENT ON COLUMN events.position IS 'Position in the log, from 1 without gaps';
COMMENT ON COLUMN events.time IS 'When it happened, as its publisher says';
COMMENT ON COLUMN events.stream_time IS 'When the log kept it, by the broker''s clock; all views date by this';
COMMENT ON COLUMN events.version IS 'Schema version of data as shown here (earlier ones are upcast)';
COMMENT ON COLUMN events.actor IS 'Who states it, as kind:id, the same as in its subject';
COMMENT ON COLUMN events.trace_id IS 'Trace that it came from: the envelope''s, else the one its data names';
COMMENT ON COLUMN events.message_id IS 'Message that it came from: the envelope''s, else the one its data names';
COMMENT ON COLUMN events.data IS 'What the event says';
"""


def fold(bench: Workbench, facts: Facts) -> None:
    """Append the accepted events of the batch."""
    for fact in facts:
        if fact is RecallServed:
            continue
        bench.run(f"""
            INSERT INTO other_events
            SELECT position, time, stream_time, event_id, type, version, org, entity, entity_id, actor,
                trace_id, message_id, causation_id, correlation_id, traceparent, source, data
            FROM {table_of(fact)}
        """)


def fold_few(con: duckdb.DuckDBPyConnection, counted: list[Counted]) -> None:
    """Append the accepted events of a small batch."""
    insert(
        con,
        "other_events",
        (
            (
                *(c.position, Moment(c.happened_us), Moment(c.stored_us), c.envelope.id),
                *(c.fact.name, c.fact.stated_version(), c.org, c.fact.entity(), c.entity_id, c.envelope.actor),
                *(c.trace_id, c.message_id, c.envelope.causationid, c.envelope.correlationid),
                *(c.envelope.traceparent, c.envelope.source, Json(c.fact.model_dump_json())),
            )
            for c in counted
            if not isinstance(c.fact, RecallServed)
        ),
    )

"""Tables of recalls: one row for each event, and the views that unfold it.

A recall is most of what a busy node keeps, so each is kept once: `recall_events` has the event itself, as it was
decoded, and `events`, `recalls` and `lineage` have its rows from there. A row for each item, with the recall's ids,
its text and its event repeated, took many times as much.

`packed_recalls` has lists. DuckDB writes into its write-ahead log, with each row that is inserted alone, the lists of
up to 2,047 rows before it. So a few recalls wait as text in `waiting_recalls`, and are packed together.

Where a node keeps the detail of recalls for a time only (projections/views/recalls/retention.py), `recall_remains` has
what is left of the older ones: who, when, of which kind, for which trace, which items. Everything that counts recalls
goes by that, so its numbers are the same.
"""

from __future__ import annotations

from ledger.events.recall import RecallServed
from projections.fold_kit.envelopes import data_as_json, written_version
from projections.fold_kit.recalls import counts
from projections.fold_kit.schema_sql import data_structure, struct_type
from projections.fold_kit.sql_text import ALL_DIFFERENT, text

KEPT = ", ".join(
    (
        *("position", "time", "stream_time", "event_id", "org", "entity_id", "actor", "trace_id", "message_id"),
        *("causation_id", "correlation_id", "traceparent", "source"),
    )
)
"""The columns that both tables of recalls have: those of a decoded event that differ between recalls."""
PARSED = f"from_json(data, {text(data_structure(RecallServed))})"
"""The data of a recall that waits, as a struct."""
PACKED = "packed_recalls"
"""The table of those that do not wait."""


def of_recalls(columns: str, packed: str = PACKED) -> str:
    """A query of these columns of all recalls whose detail is kept. Of `d` it reads only the fields that it names.

    Of the view `recall_events`, DuckDB reads the whole of each recall's data. `packed` is a relation in the place of
    the table.
    """
    return f"""SELECT {columns} FROM {packed}
        UNION ALL SELECT {columns} FROM (SELECT {KEPT}, {PARSED} AS d FROM waiting_recalls)"""


def _each(items: str) -> str:
    """The columns `item` and `n` of a row for each item of a list, or of one row without an item."""
    return f"""unnest(CASE WHEN len({items}) = 0 THEN [NULL] ELSE {items} END) AS item,
        unnest(range(1, greatest(len({items}), 1) + 1)) AS n"""


_RANK = "CASE WHEN item IS NOT NULL THEN n END::INTEGER"

_COLUMNS = f"""
    position BIGINT NOT NULL, time TIMESTAMPTZ NOT NULL, stream_time TIMESTAMPTZ NOT NULL,
    event_id VARCHAR {ALL_DIFFERENT} NOT NULL, org VARCHAR NOT NULL, entity_id VARCHAR {ALL_DIFFERENT} NOT NULL,
    actor VARCHAR NOT NULL, trace_id VARCHAR, message_id VARCHAR {ALL_DIFFERENT},
    causation_id VARCHAR, correlation_id VARCHAR, traceparent VARCHAR, source VARCHAR NOT NULL"""

TABLES = f"""
CREATE TABLE packed_recalls ({_COLUMNS}, d {struct_type(RecallServed)} NOT NULL);
COMMENT ON TABLE packed_recalls IS 'Internal: each recall once; read the views recalls, events and lineage';
CREATE TABLE waiting_recalls ({_COLUMNS}, data VARCHAR NOT NULL);
COMMENT ON TABLE waiting_recalls IS 'Internal: recalls that are packed with the next ones';
CREATE VIEW recall_events AS FROM packed_recalls UNION ALL SELECT {KEPT}, {PARSED} FROM waiting_recalls;
COMMENT ON VIEW recall_events IS 'Internal: all recalls whose detail is kept';
CREATE TABLE recall_remains (
    position BIGINT NOT NULL, time TIMESTAMPTZ NOT NULL, stream_time TIMESTAMPTZ NOT NULL, org VARCHAR NOT NULL,
    actor VARCHAR NOT NULL, trace_id VARCHAR, kind VARCHAR NOT NULL, items VARCHAR[] NOT NULL,
    recall_key UBIGINT NOT NULL, said BLOB, bytes INTEGER NOT NULL
);
COMMENT ON TABLE recall_remains IS 'Internal: what is left of recalls whose detail is past its retention';
CREATE TABLE recall_retention (days INTEGER, before TIMESTAMPTZ NOT NULL);
COMMENT ON TABLE recall_retention IS
    'Internal: for how many days this file keeps the detail of recalls, null for all, and of which it is gone';
CREATE VIEW served_items AS
    SELECT position, stream_time AS time, org, d.kind AS kind, actor, trace_id, unnest(d.items).id AS item_id
    FROM recall_events
    UNION ALL SELECT position, stream_time, org, kind, actor, trace_id, unnest(items) FROM recall_remains;
COMMENT ON VIEW served_items IS 'Internal: the part of recalls that is counted';
CREATE VIEW recalls AS
    SELECT position, stream_time AS time, entity_id AS recall_id, org, d.kind AS kind, d.query AS query,
        {_RANK} AS rank, item.id AS item_id, item.version AS item_version, item.relevance AS relevance,
        actor, trace_id, message_id, d.view_position AS view_position, d.ranking.matches[n] AS match,
        d.ranking.policy AS policy, d.ranking.session AS session, d.ranking.language AS language,
        d.ranking.intent AS intent
    FROM (SELECT *, {_each("d.items")} FROM recall_events)
    UNION ALL
    SELECT position, stream_time, NULL, org, kind, NULL, {_RANK}, item, NULL, NULL, actor, trace_id, NULL, NULL, NULL,
        NULL, NULL, NULL, NULL
    FROM (SELECT *, {_each("items")} FROM recall_remains);
COMMENT ON VIEW recalls IS 'Items that were served; a recall that served none has one row without an item. Past its
retention, which a node may set, a recall has only who, when, of which kind, for which trace, and which items';
COMMENT ON COLUMN recalls.recall_id IS 'Null past its retention';
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

AS_EVENTS = f"""
    SELECT position, time, stream_time, event_id, '{RecallServed.name}' AS type, version, org,
        '{RecallServed.entity()}' AS entity, entity_id, actor, trace_id, message_id, causation_id, correlation_id,
        traceparent, source, data
    FROM (SELECT *, {written_version(RecallServed)} AS version, {data_as_json(RecallServed)} AS data FROM recall_events)
    UNION ALL
    SELECT position, time, stream_time, NULL, '{RecallServed.name}', NULL, org, '{RecallServed.entity()}', NULL, actor,
        trace_id, NULL, NULL, NULL, NULL, NULL, NULL
    FROM recall_remains"""
"""The rows of recalls in the view `events`."""

_LINK = f"""position, stream_time AS time, event_id, '{RecallServed.name}' AS event_type, org,
    '{RecallServed.entity()}' AS entity, entity_id"""


def as_links(served: str, shown: str) -> str:
    """The rows of recalls in the view `lineage`; of those past their retention there are none."""
    return f"""
    SELECT {_LINK}, 'trace' AS relation, 'trace:' || trace_id AS ref FROM recall_events WHERE trace_id IS NOT NULL
    UNION ALL
    SELECT {_LINK}, 'message', 'message:' || message_id FROM recall_events WHERE message_id IS NOT NULL
    UNION ALL
    SELECT {_LINK}, 'caused_by', 'event:' || causation_id FROM recall_events WHERE causation_id IS NOT NULL
    UNION ALL
    SELECT {_LINK}, 'correlation', 'correlation:' || correlation_id FROM recall_events
    WHERE correlation_id IS NOT NULL
    UNION ALL
    SELECT {_LINK}, CASE WHEN {counts("d.")} THEN '{served}' ELSE '{shown}' END, unnest(d.items).id
    FROM recall_events"""

"""Fold of lineage: one row for each link of an event. Those of recalls follow from the recalls themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import duckdb

from ledger.events.goal import GoalFocused
from ledger.events.recall import RecallServed
from projections.fold_kit.decisions import Counted
from projections.fold_kit.inserting import insert
from projections.fold_kit.sql_text import ALL_DIFFERENT, Moment, Value
from projections.fold_kit.workbench import Facts, Workbench
from projections.views.lineage.links import PREFIXES, REFERS, SERVING, SHOWN
from projections.views.recalls.tables import as_links

TABLES = f"""
CREATE TABLE other_links (
    position BIGINT NOT NULL, time TIMESTAMPTZ NOT NULL, event_id VARCHAR {ALL_DIFFERENT} NOT NULL,
    event_type VARCHAR NOT NULL, org VARCHAR NOT NULL, entity VARCHAR NOT NULL,
    entity_id VARCHAR {ALL_DIFFERENT} NOT NULL, relation VARCHAR NOT NULL, ref VARCHAR {ALL_DIFFERENT} NOT NULL
);
COMMENT ON TABLE other_links IS 'Internal: the links of events that are no recalls; read the view lineage';
CREATE VIEW lineage AS FROM other_links UNION ALL {as_links(SERVING[RecallServed], SHOWN)};
COMMENT ON VIEW lineage IS 'The links of each event: what it came from and what it refers to';
COMMENT ON COLUMN lineage.relation IS 'trace, message, caused_by, correlation; what it refers to: resource, served
(by a recall), shown (on a page), injected (into a goal), evolution, undoes, absorbed, merged_into, slim, about,
contradicts, chunk (of a document), bulk (of many changes at once)';
COMMENT ON COLUMN lineage.ref IS
    'trace:ID, message:ID, event:ID, correlation:ID, resource:ID, bulk:ID or the id of an item';
CREATE MACRO lineage_of(asked) AS TABLE
    SELECT 'from' AS direction, relation, ref, event_id, event_type, entity, entity_id, position, time
    FROM lineage WHERE entity_id = asked OR concat('event:', event_id) = asked
    UNION ALL
    SELECT 'to', relation, entity_id, event_id, event_type, entity, entity_id, position, time
    FROM lineage WHERE ref = asked
    UNION ALL
    SELECT 'from', 'caused_by_trace', t.ref, l.event_id, l.event_type, l.entity, l.entity_id, l.position, l.time
    FROM lineage l
    JOIN lineage t ON l.relation = 'caused_by' AND concat('event:', t.event_id) = l.ref AND t.relation = 'trace'
    WHERE l.entity_id = asked AND t.ref NOT IN (
        SELECT own.ref FROM lineage own WHERE own.entity_id = asked AND own.relation = 'trace')
    UNION ALL
    SELECT 'to', 'caused', l.entity_id, l.event_id, l.event_type, l.entity, l.entity_id, l.position, l.time
    FROM lineage l
    JOIN lineage t ON l.relation = 'caused_by' AND concat('event:', t.event_id) = l.ref
    WHERE t.ref = asked AND t.relation IN ('trace', 'message');
COMMENT ON MACRO TABLE lineage_of IS 'Links of an item, of trace:ID, message:ID or event:ID, in both directions';
"""


def fold(bench: Workbench, _facts: Facts) -> None:
    """Append the links of the accepted events, which the decoder has extracted."""
    bench.run("INSERT INTO other_links FROM derived_lineage")


def fold_few(con: duckdb.DuckDBPyConnection, counted: list[Counted]) -> None:
    """Append the links of a few events."""
    insert(con, "other_links", (row for c in counted if not isinstance(c.fact, RecallServed) for row in _rows(c)))


def _rows(c: Counted) -> Iterator[tuple[Value, ...]]:
    links: list[tuple[str, str, str | None]] = [
        *(("trace", "trace:", name) for name in c.named("trace_id")),
        *(("message", "message:", name) for name in c.named("message_id")),
        ("caused_by", "event:", c.envelope.causationid),
        ("correlation", "correlation:", c.envelope.correlationid),
    ]
    for relation, field, many in REFERS.get(type(c.fact), ()):
        value = _value(c.fact, field)
        links += [(relation, PREFIXES.get(relation, ""), ref) for ref in (value or () if many else [value])]
    if isinstance(c.fact, GoalFocused):
        links += [(SERVING[GoalFocused], "", item.id) for item in c.fact.items]
    for relation, prefix, ref in links:
        if ref is not None:
            at = (c.position, Moment(c.stored_us), c.envelope.id, c.fact.name, c.org, c.fact.entity(), c.entity_id)
            yield (*at, relation, prefix + ref)


def _value(fact: Any, field: str) -> Any:
    """The value of a field, also of a nested object; None where there is no such object."""
    for name in field.split("."):
        fact = None if fact is None else getattr(fact, name)
    return fact

"""Which links does an event state? What it came from, and what it refers to (mission L3)."""

from __future__ import annotations

from functools import cache

from ledger.event import Fact
from ledger.events.goal import GoalFocused
from ledger.events.knowledge import KnowledgeRevised, KnowledgeSaved
from ledger.events.recall import RecallServed
from projections.workbench import Facts, table_of

SERVING: dict[type[Fact], str] = {RecallServed: "served", GoalFocused: "injected"}
"""What a fact that hands out items links them by."""

_LINKS = (
    ("trace", "trace:", "trace_id"),
    ("message", "message:", "message_id"),
    ("caused_by", "event:", "causation_id"),
    ("correlation", "correlation:", "correlation_id"),
)


@cache
def links(facts: Facts) -> str:
    """The query over `envelopes` and the parsed tables of these facts: the columns of `lineage`."""
    row = "position, stream_time, event_id, type, org, entity, entity_id"
    selects = [
        f"SELECT {row}, '{relation}' AS relation, concat('{prefix}', {column}) AS ref "
        f"FROM envelopes WHERE {column} IS NOT NULL"
        for relation, prefix, column in _LINKS
    ]
    for fact in facts:
        if fact in (KnowledgeSaved, KnowledgeRevised):
            selects.append(
                f"SELECT {row}, 'resource', concat('resource:', unnest(d.resource_ids)) FROM {table_of(fact)} "
                "WHERE len(d.resource_ids) > 0"
            )
        if fact in SERVING:
            selects.append(f"SELECT {row}, '{SERVING[fact]}', unnest(d.items).id FROM {table_of(fact)}")
    return " UNION ALL ".join(selects)

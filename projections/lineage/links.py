"""Which links does an event state? What it came from, and what it refers to (mission L3)."""

from __future__ import annotations

from functools import cache
from typing import get_origin

from ledger.event import Fact
from ledger.events.conflict import ConflictRecorded
from ledger.events.evolution import EvolutionRequested
from ledger.events.goal import GoalFocused
from ledger.events.knowledge import (
    KnowledgeAbsorbed,
    KnowledgeEvolved,
    KnowledgeMerged,
    KnowledgeReverted,
    KnowledgeRevised,
    KnowledgeSaved,
)
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

REFERS: dict[type[Fact], tuple[tuple[str, str], ...]] = {
    KnowledgeSaved: (("resource", "resource_ids"),),
    KnowledgeRevised: (("resource", "resource_ids"),),
    KnowledgeEvolved: (("evolution", "evolution"),),
    KnowledgeReverted: (("undoes", "cause"),),
    KnowledgeAbsorbed: (("absorbed", "merged"), ("slim", "slim")),
    KnowledgeMerged: (("merged_into", "into"), ("slim", "slim")),
    EvolutionRequested: (("about", "item_id"),),
    ConflictRecorded: (("contradicts", "first"), ("contradicts", "second")),
}
"""What a fact refers to: the relation, and the field that holds an id or a list of them."""
PREFIXES = {"resource": "resource:"}


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
        for relation, field in REFERS.get(fact, ()):
            prefix = PREFIXES.get(relation, "")
            if get_origin(fact.model_fields[field].annotation) is list or field == "resource_ids":
                ref, there = f"unnest(d.{field})", f"len(d.{field}) > 0"
            else:
                ref, there = f"d.{field}", f"d.{field} IS NOT NULL"
            selects.append(f"SELECT {row}, '{relation}', concat('{prefix}', {ref}) FROM {table_of(fact)} WHERE {there}")
        if fact in SERVING:
            selects.append(f"SELECT {row}, '{SERVING[fact]}', unnest(d.items).id FROM {table_of(fact)}")
    return " UNION ALL ".join(selects)

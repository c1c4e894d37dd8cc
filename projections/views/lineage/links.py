"""Extraction of an event's links: what it came from, and what it refers to."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from ledger.event import Fact
from ledger.events.conflict import ConflictRecorded
from ledger.events.document import DocumentIngested
from ledger.events.evolution import EvolutionRequested
from ledger.events.goal import GoalFocused
from ledger.events.knowledge import (
    KnowledgeAbsorbed,
    KnowledgeEvolved,
    KnowledgeMerged,
    KnowledgeRestored,
    KnowledgeRetired,
    KnowledgeReverted,
    KnowledgeRevised,
    KnowledgeSaved,
    KnowledgeShared,
    KnowledgeSuperseded,
)
from ledger.events.recall import RecallServed
from ledger.events.statement import StatementDropped, StatementHeld, StatementReleased
from projections.fold_kit.envelopes import named_in
from projections.fold_kit.recalls import counts
from projections.fold_kit.workbench import Facts, table_of

SERVING: dict[type[Fact], str] = {RecallServed: "served", GoalFocused: "injected"}
"""The relation between an event that serves items and each of the items."""
SHOWN = "shown"
"""The same of a recall that does not count: a look at a page."""

_LINKS = (
    ("trace", "trace:", "trace_id"),
    ("message", "message:", "message_id"),
    ("caused_by", "event:", "causation_id"),
    ("correlation", "correlation:", "correlation_id"),
)


class Reference(NamedTuple):
    """One relation of a fact to something else: the field that names it, also of a nested object, or a list of many."""

    relation: str
    field: str
    many: bool = False


_RESOURCES = Reference("resource", "resource_ids", many=True)
REFERS: dict[type[Fact], tuple[Reference, ...]] = {
    KnowledgeSaved: (_RESOURCES, Reference("supersedes", "supersedes")),
    KnowledgeRevised: (_RESOURCES,),
    KnowledgeEvolved: (Reference("evolution", "evolution"),),
    KnowledgeReverted: (Reference("undoes", "cause"),),
    KnowledgeAbsorbed: (Reference("absorbed", "merged", many=True), Reference("slim", "slim")),
    KnowledgeMerged: (Reference("merged_into", "into"), Reference("slim", "slim")),
    KnowledgeSuperseded: (Reference("superseded_by", "by"),),
    **dict.fromkeys((KnowledgeRetired, KnowledgeRestored, KnowledgeShared), (Reference("bulk", "bulk.id"),)),
    EvolutionRequested: (Reference("about", "item_id"),),
    DocumentIngested: (Reference("chunk", "chunks", many=True), _RESOURCES),
    ConflictRecorded: (Reference("contradicts", "first"), Reference("contradicts", "second")),
    StatementHeld: (Reference("says_again", "item_id"),),
    StatementReleased: (Reference("says_again", "item_id"),),
    StatementDropped: (Reference("says_again", "item_id"),),
}
"""What a fact refers to."""
PREFIXES = {"resource": "resource:", "bulk": "bulk:"}


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
        for relation, prefix, column in _LINKS[:2]:
            names = [column]  # the envelope's, or the first of the data, which is a link already
            for name in named_in(fact, column):
                is_new = " AND ".join(f"{name} IS DISTINCT FROM {earlier}" for earlier in names)
                selects.append(
                    f"SELECT {row}, '{relation}', concat('{prefix}', {name}) FROM {table_of(fact)} "
                    f"WHERE {name} IS NOT NULL AND {is_new}"
                )
                names.append(name)
        for relation, field, many in REFERS.get(fact, ()):
            prefix = PREFIXES.get(relation, "")
            if many:
                ref, is_set = f"unnest(d.{field})", f"len(d.{field}) > 0"
            else:
                ref, is_set = f"d.{field}", f"d.{field} IS NOT NULL"
            selects.append(
                f"SELECT {row}, '{relation}', concat('{prefix}', {ref}) FROM {table_of(fact)} WHERE {is_set}"
            )
        if fact in SERVING:
            relation = f"'{SERVING[fact]}'"
            if fact is RecallServed:
                relation = f"CASE WHEN {counts('d.')} THEN {relation} ELSE '{SHOWN}' END"
            selects.append(f"SELECT {row}, {relation}, unnest(d.items).id FROM {table_of(fact)}")
    return " UNION ALL ".join(selects)

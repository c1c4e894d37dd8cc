"""Extraction of an event's links: what it came from, and what it refers to.

Those of recalls are not among them: `lineage` has them out of the recalls (projections/views/recalls/tables.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import pyarrow as pa

from ledger.event import FROM, Fact
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
from projections.fold_kit import late_compute as pc

SERVING: dict[type[Fact], str] = {RecallServed: "served", GoalFocused: "injected"}
"""The relation between an event that serves items and each of the items."""
SHOWN = "shown"
"""The relation of a recall that does not count, a look at a page, to each of its items."""

LINKS = (
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
"""How a relation names what is no item and no process."""
OF_REFERENCES = (*(prefix for _, prefix, _ in LINKS), *PREFIXES.values())
"""How each reference begins that is no item's id."""

_ROW = ("position", "stream_time", "event_id", "type", "org", "entity", "entity_id")


def links(parsed: Mapping[type[Fact], pa.Table]) -> pa.Table:
    """The links in the decoded events of these facts, of which there is at least one: the columns of `lineage`.
    Recalls have none here.

    Columns are computed from columns. A query costs 5 ms to plan, as much as a thousand events cost to decode.
    """
    found: list[pa.Table] = []
    for fact, events in parsed.items():
        rows = events.select(_ROW)
        if fact is RecallServed:
            found.append(_linked(rows.slice(0, 0), "trace", "", pa.array([], pa.string())))
            continue
        for relation, prefix, column in LINKS:
            found.append(_each(rows, relation, prefix, events[column]))
        for relation, prefix, column in LINKS[:2]:
            names = [events[column]]  # the envelope's, or the first of the data, which is a link already
            for part in FROM:
                if part in fact.model_fields:
                    name = _named(events, part, column)
                    found.append(_each(rows, relation, prefix, _other_than(name, names)))
                    names.append(name)
        for relation, field, many in REFERS.get(fact, ()):
            refs = pc.struct_field(events["d"], field.split("."))
            found.append((_every if many else _each)(rows, relation, PREFIXES.get(relation, ""), refs))
        if fact in SERVING:
            found.append(_every(rows, SERVING[fact], "", pc.struct_field(events["d"], ["items"]), "id"))
    return pa.concat_tables(found)


def _named(events: pa.Table, part: str, field: str) -> pa.ChunkedArray:
    """The `trace_id` or `message_id` in one part of the events' data; null where it is empty."""
    name = pc.struct_field(events["d"], [part, field])
    return pc.if_else(pc.equal(name, ""), None, name)


def _other_than(name: pa.ChunkedArray, earlier: Iterable[pa.ChunkedArray]) -> pa.ChunkedArray:
    """The name where none of the earlier ones is the same, else null."""
    for other in earlier:
        name = pc.if_else(pc.fill_null(pc.equal(name, other), False), None, name)
    return name


def _each(rows: pa.Table, relation: str, prefix: str, refs: pa.ChunkedArray) -> pa.Table:
    """A link to the reference of each row that has one."""
    if refs.null_count:
        rows, refs = rows.filter(pc.is_valid(refs)), refs.drop_null()
    return _linked(rows, relation, prefix, refs)


def _every(rows: pa.Table, relation: str, prefix: str, lists: pa.ChunkedArray, field: str | None = None) -> pa.Table:
    """A link to each reference in the list of each row; `field` of the list's elements, where they are structs."""
    whole = lists.combine_chunks()
    refs = pc.list_flatten(whole)
    rows = rows.take(pc.list_parent_indices(whole))
    return _linked(rows, relation, prefix, refs if field is None else pc.struct_field(refs, [field]))


def _linked(rows: pa.Table, relation: str, prefix: str, refs: pa.Array | pa.ChunkedArray) -> pa.Table:
    relations = pa.repeat(relation, len(refs))
    named = pc.binary_join_element_wise(prefix, refs, "") if prefix else refs
    return rows.append_column("relation", relations).append_column("ref", named)

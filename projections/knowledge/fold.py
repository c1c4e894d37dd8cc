"""Which versions follow from knowledge events (mission K1-K3)?"""

from __future__ import annotations

from functools import cache

from ledger.event import Fact
from ledger.events.knowledge import (
    KnowledgeRestored,
    KnowledgeRetired,
    KnowledgeRevised,
    KnowledgeSaved,
    KnowledgeScored,
)
from projections.workbench import Facts, Workbench, table_of

# What a change states; what it leaves null stays as in the version before.
_STATED: dict[type[Fact], dict[str, str]] = {
    KnowledgeRevised: {
        name: f"p.e.data.{name}" for name in ("types", "task", "content", "tags", "scopes", "owner", "resource_ids")
    }
    | {"source": "to_json(p.e.data.source)"},
    KnowledgeScored: {"score": "p.e.data.score"},
    KnowledgeRetired: {"status": "'retired'"},
    KnowledgeRestored: {"status": "'active'"},
}
_KEPT = {
    "types": "VARCHAR[]",
    "task": "VARCHAR",
    "content": "VARCHAR",
    "tags": "JSON",
    "scopes": "VARCHAR[]",
    "owner": "VARCHAR",
    "resource_ids": "VARCHAR[]",
    "source": "JSON",
    "score": "INTEGER",
    "status": "VARCHAR",
    "first_helpful": "BIGINT",
    "first_harmful": "BIGINT",
    "confidence": "DOUBLE",
    "created_position": "BIGINT",
    "created_at": "TIMESTAMPTZ",
}
_VISIBILITY = """CASE WHEN list_contains(scopes, 'public') THEN 'public'
    WHEN len(list_filter(scopes, lambda x: starts_with(x, 'org:'))) > 0 THEN 'org'
    WHEN len(scopes) = 1 AND (scopes[1] = owner OR starts_with(scopes[1], 'user:')) THEN 'private'
    ELSE 'shared' END"""


def fold(bench: Workbench, facts: Facts) -> None:
    """Append the batch's versions and end the ones they replace; the items' state was renewed by their rules."""
    if not any(fact.entity() == "knowledge" for fact in facts):
        return
    if KnowledgeSaved in facts:
        bench.run(_SAVED)
    changes = tuple(fact for fact in facts if fact in _STATED)
    if changes:
        bench.run(_changed(changes))
        bench.run(_ENDED)


_SAVED = f"""
INSERT INTO knowledge_versions
SELECT org, entity_id, 1, 'saved', position, NULL, stream_time, NULL, actor, trace_id, message_id, event_id,
    types, task, content, tags, scopes, owner, {_VISIBILITY}, resource_ids, source, score, 'active',
    helpful, harmful, confidence, position, stream_time
FROM (
    SELECT a.*, p.e.data.types, p.e.data.task, p.e.data.content, p.e.data.tags, p.e.data.scopes,
        p.e.data.resource_ids, to_json(p.e.data.source) AS source, p.e.data.score, p.e.data.helpful,
        p.e.data.harmful, p.e.data.confidence
    FROM (SELECT * EXCLUDE (source) FROM accepted) a
    JOIN parsed_knowledge_saved p ON p.position = a.position
)
"""

_ENDED = """
UPDATE knowledge_versions SET valid_to = a.position, valid_to_time = a.stream_time
FROM accepted a WHERE a.entity = 'knowledge' AND a.closes IS NOT NULL AND knowledge_versions.valid_from = a.closes
"""


@cache
def _changed(changes: Facts) -> str:
    """Versions out of changes: each field is the last one stated, starting from the version before the batch."""
    stated = " UNION ALL ".join(
        "SELECT p.position, "
        + ", ".join(f"({_STATED[fact].get(name, 'NULL')})::{kind} AS {name}" for name, kind in _KEPT.items())
        + f" FROM {table_of(fact)} p"
        for fact in changes
    )
    before = ", ".join(f"v.{name}" for name in _KEPT)
    filled = ", ".join(f"last_value({name} IGNORE NULLS) OVER w AS {name}" for name in _KEPT)
    columns = "org, id, version, change, stream_time, actor, trace_id, message_id, event_id"
    return f"""
INSERT INTO knowledge_versions
SELECT org, id, version, change, position, NULL, stream_time, NULL, actor, trace_id, message_id, event_id,
    types, task, content, tags, scopes, owner, {_VISIBILITY}, resource_ids, source, score, status,
    first_helpful, first_harmful, confidence, created_position, created_at
FROM (
    SELECT position, {columns}, {filled} FROM (
        SELECT v.valid_from AS position, v.org, v.id, NULL AS version, NULL AS change, NULL AS stream_time,
            NULL AS actor, NULL AS trace_id, NULL AS message_id, NULL AS event_id, {before}
        FROM knowledge_versions v JOIN accepted a ON v.valid_from = a.closes AND a.entity = 'knowledge'
        UNION ALL
        SELECT a.position, a.org, a.entity_id, a.item_version, split_part(a.type, '.', 2), a.stream_time,
            a.actor, a.trace_id, a.message_id, a.event_id, s.* EXCLUDE (position)
        FROM accepted a JOIN ({stated}) s ON s.position = a.position
    ) WINDOW w AS (PARTITION BY org, id ORDER BY position ROWS UNBOUNDED PRECEDING)
) WHERE change IS NOT NULL
"""

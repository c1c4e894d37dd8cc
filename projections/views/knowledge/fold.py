"""Fold of knowledge events: each accepted change appends a version and ends the one that it replaces."""

from __future__ import annotations

from functools import cache

import duckdb
import orjson

from kledger.contract.knowledge import Source
from kledger.contract.scopes import visibility_of
from ledger.event import Fact
from ledger.events.knowledge import (
    KnowledgeAbsorbed,
    KnowledgeEvolved,
    KnowledgeMerged,
    KnowledgeRestored,
    KnowledgeRetired,
    KnowledgeReverted,
    KnowledgeRevised,
    KnowledgeSaved,
    KnowledgeScored,
    KnowledgeShared,
    KnowledgeUnmerged,
    Origin,
)
from ledger.privacy.sealed import ERASED
from projections.fold_kit.close_versions import end_versions
from projections.fold_kit.decisions import Counted
from projections.fold_kit.envelopes import READERS, WRITERS
from projections.fold_kit.erased import erased_at, positions_of
from projections.fold_kit.sql_text import Json, Moment, Value, among, insert, text
from projections.fold_kit.visibility import EVERYBODY, visibility
from projections.fold_kit.workbench import Facts, Workbench, table_of

# Whether the event's content was erased; null where it has none, so that the previous value is carried over.
_ERASED = f"""CASE WHEN d.content IS NOT NULL
    THEN d.content = {text(ERASED)} AND {erased_at("position", "content")} END"""
# The columns that a change sets; those that it leaves null are carried over from the previous version.
_SET: dict[type[Fact], dict[str, str]] = {
    KnowledgeRevised: {
        name: f"d.{name}" for name in ("types", "task", "content", "tags", "scopes", "owner", "resource_ids")
    }
    | {"source": "to_json(d.source)", "erased": _ERASED},
    KnowledgeScored: {"score": "d.score"},
    KnowledgeRetired: {"status": "'retired'"},
    KnowledgeRestored: {"status": "'active'"},
    KnowledgeShared: {"shared_with": READERS, "writers": WRITERS},
    KnowledgeEvolved: {"content": "d.content", "task": "d.task", "erased": _ERASED},
    KnowledgeAbsorbed: {name: f"d.{name}" for name in ("types", "task", "content", "tags", "resource_ids")}
    | {"erased": _ERASED},
    KnowledgeReverted: {
        name: f"d.{name}" for name in ("types", "task", "content", "tags", "scopes", "resource_ids", "score")
    }
    | {"source": "to_json(d.source)", "erased": _ERASED},
    KnowledgeMerged: {"status": "'merged'", "merged_into": "d.into"},
    KnowledgeUnmerged: {"status": "'active'"},
}
_CARRIED = {
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
    "merged_into": "VARCHAR",
    "shared_with": "VARCHAR[]",
    "writers": "VARCHAR[]",
    "origin": "JSON",
    "erased": "BOOLEAN",
}


def fold(bench: Workbench, facts: Facts) -> None:
    """Append the batch's versions and end the ones they replace; the rules have already updated the items' state."""
    if not any(fact.entity() == "knowledge" for fact in facts):
        return
    if KnowledgeSaved in facts:
        bench.run(_SAVED)
    changes = tuple(fact for fact in facts if fact in _SET)
    if changes:
        bench.run(_changed(changes))
        bench.run(_ENDED)


_SAVED = f"""
INSERT INTO knowledge_versions
SELECT org, entity_id, 1, 'saved', position, NULL, stream_time, NULL, actor, trace_id, message_id, event_id,
    types, task, content, tags, scopes, owner, {visibility()}, resource_ids, source, score, 'active',
    helpful, harmful, confidence, position, stream_time, NULL, []::VARCHAR[], []::VARCHAR[], origin, erased
FROM (
    SELECT * EXCLUDE (source), d.types, d.task, d.content, d.tags, d.scopes, d.resource_ids,
        to_json(d.source) AS source, d.score, d.confidence,
        CASE WHEN d.origin IS NOT NULL THEN to_json(d.origin) END AS origin, {_ERASED} AS erased
    FROM {table_of(KnowledgeSaved)}
)
"""

_ENDED = """
UPDATE knowledge_versions SET valid_to = a.position, valid_to_time = a.stream_time
FROM accepted a WHERE a.entity = 'knowledge' AND a.closes IS NOT NULL AND knowledge_versions.valid_from = a.closes
"""


@cache
def _changed(changes: Facts) -> str:
    """The statement that makes versions: each field has its last value, starting from the version before the batch."""
    changed_fields = " UNION ALL ".join(
        "SELECT position, org, entity_id, item_version, split_part(type, '.', 2), stream_time, actor, trace_id, "
        "message_id, event_id, "
        + ", ".join(f"({_SET[fact].get(name, 'NULL')})::{kind} AS {name}" for name, kind in _CARRIED.items())
        + f" FROM {table_of(fact)}"
        for fact in changes
    )
    before = ", ".join(f"v.{name}" for name in _CARRIED)
    filled = ", ".join(f"last_value({name} IGNORE NULLS) OVER w AS {name}" for name in _CARRIED)
    columns = "org, id, version, change, stream_time, actor, trace_id, message_id, event_id"
    return f"""
INSERT INTO knowledge_versions
SELECT org, id, version, change, position, NULL, stream_time, NULL, actor, trace_id, message_id, event_id,
    types, task, content, tags, scopes, owner, {visibility(EVERYBODY)}, resource_ids, source, score, status,
    first_helpful, first_harmful, confidence, created_position, created_at, merged_into, shared_with, writers,
    origin, erased
FROM (
    SELECT position, {columns}, {filled} FROM (
        SELECT v.valid_from AS position, v.org, v.id, NULL AS version, NULL AS change, NULL AS stream_time,
            NULL AS actor, NULL AS trace_id, NULL AS message_id, NULL AS event_id, {before}
        FROM knowledge_versions v JOIN accepted a ON v.valid_from = a.closes AND a.entity = 'knowledge'
        UNION ALL
        {changed_fields}
    ) WINDOW w AS (PARTITION BY org, id ORDER BY position ROWS UNBOUNDED PRECEDING)
) WHERE change IS NOT NULL
"""


def fold_few(con: duckdb.DuckDBPyConnection, counted: list[Counted]) -> None:
    """The same for a few events."""
    changes = [c for c in counted if c.fact.entity() == "knowledge" and c.version is not None]
    closing = [c for c in changes if c.closes is not None]
    versions = _versions_at(con, [c.closes for c in closing if c.closes is not None]) if closing else {}
    erased = positions_of(con, [c.position for c in changes if getattr(c.fact, "content", None) == ERASED], "content")
    rows = []
    for c in changes:
        version = _saved(c) if c.closes is None else {**versions[c.closes], **_changed_fields(c.fact)}
        if getattr(c.fact, "content", None) is not None:
            version["erased"] = c.position in erased
        versions[c.position] = version
        rows.append(_row(c, version))
    insert(con, "knowledge_versions", rows)
    end_versions(con, "knowledge_versions", closing)


def _versions_at(con: duckdb.DuckDBPyConnection, positions: list[int]) -> dict[int, dict[str, Value]]:
    """The carried columns of these versions, by the position that made them."""
    columns = ", ".join(
        f"{name}::VARCHAR" if kind == "JSON" else f"epoch_us({name})" if kind == "TIMESTAMPTZ" else name
        for name, kind in _CARRIED.items()
    )
    rows = con.execute(
        f"SELECT valid_from, {columns} FROM knowledge_versions WHERE valid_from IN ({among(positions)})"
    ).fetchall()
    typed = {"JSON": Json, "TIMESTAMPTZ": Moment}
    return {
        row[0]: {
            name: typed[kind](value) if kind in typed and value is not None else value
            for (name, kind), value in zip(_CARRIED.items(), row[1:], strict=True)
        }
        for row in rows
    }


def _saved(c: Counted) -> dict[str, Value]:
    fact = c.fact
    assert isinstance(fact, KnowledgeSaved)  # every other change closes a version
    return {
        **_fields(fact),
        "score": fact.score,
        "status": "active",
        "first_helpful": fact.helpful,
        "first_harmful": fact.harmful,
        "confidence": fact.confidence,
        "created_position": c.position,
        "created_at": Moment(c.stored_us),
        "merged_into": None,
        "shared_with": [],
        "writers": [],
        "origin": None if fact.origin is None else _value(fact.origin),
    }


def _fields(fact: Fact) -> dict[str, Value]:
    """The fields that the fact sets, in the order of the table."""
    fields: dict[str, Value] = {}
    for name in ("types", "task", "content", "tags", "scopes", "owner", "resource_ids", "source", "score"):
        value = getattr(fact, name, None)
        if value is not None:
            fields[name] = _value(value)
    return fields


def _value(value: object) -> Value:
    if isinstance(value, dict):
        return Json(orjson.dumps(value).decode())
    if isinstance(value, (Source, Origin)):
        return Json(value.model_dump_json())
    assert isinstance(value, (str, int, list))
    return value


def _changed_fields(fact: Fact) -> dict[str, Value]:
    match fact:
        case KnowledgeRetired():
            return {"status": "retired"}
        case KnowledgeShared():
            return {"shared_with": fact.readers(), "writers": fact.writers()}
        case KnowledgeRestored() | KnowledgeUnmerged():
            return {"status": "active"}
        case KnowledgeMerged():
            return {"status": "merged", "merged_into": fact.into}
        case _:
            return _fields(fact)


def _row(c: Counted, version: dict[str, Value]) -> tuple[Value, ...]:
    fields = dict(version)
    label = visibility_of(_texts(fields["scopes"]), str(fields["owner"]), _texts(fields["shared_with"]))
    first = [fields.pop(name) for name in ("types", "task", "content", "tags", "scopes", "owner")]
    return (
        *(c.org, c.entity_id, c.version, c.fact.verb(), c.position, None, Moment(c.stored_us), None),
        *(c.envelope.actor, c.trace_id, c.message_id, c.envelope.id, *first, label, *fields.values()),
    )


def _texts(value: Value) -> list[str]:
    return [] if value is None or isinstance(value, (str, int, float)) else [str(each) for each in value]

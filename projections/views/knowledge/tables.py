"""Tables of knowledge: append-only versions, a narrow row of state for each item, and the views over both.

A rating updates only the narrow row, which has all that the rules judge by; content is written once for each version. A
new column of an item is one entry of `VERSIONS`: table, folds, views and queries follow from it.
"""

from __future__ import annotations

from typing import Any, get_args

from kledger.contract.memory import DETAILS, Memory
from kledger.contract.projects import SHARED_KINDS
from kledger.contract.scopes import visibility_of
from kledger.contract.words import ItemStatus
from ledger.events.knowledge import (
    FACTS,
    KnowledgeConfirmed,
    KnowledgeMerged,
    KnowledgePromoted,
    KnowledgeRated,
    KnowledgeSaved,
    KnowledgeShared,
    KnowledgeSuperseded,
)
from ledger.privacy.sealed import ERASED
from projections.fold_kit.decisions import Counted
from projections.fold_kit.envelopes import READERS, WRITERS
from projections.fold_kit.erased import erased_at, erased_in_batch
from projections.fold_kit.sql_text import Json, Sql, Value, among, text
from projections.fold_kit.versioned_view import (
    CREATED_AT,
    CREATED_POSITION,
    OF_EVENT,
    Column,
    Derived,
    EventValue,
    EventValues,
    Row,
    VersionedView,
    comments,
    constant,
    create_table,
    of_field,
    of_method,
)
from projections.fold_kit.visibility import EVERYBODY, visibility
from projections.views.knowledge.evidence import CONFIDENCE, OPPOSING, SUPPORTING


def _is_erased(c: Counted, _: Row) -> Value:
    content = getattr(c.fact, "content", None)
    return Sql(erased_at(str(c.position), "content")) if content == ERASED else None if content is None else False


def _visibility(row: Row) -> Value:
    scopes, owner, shared_with = row["scopes"], row["owner"], row["shared_with"]
    assert isinstance(scopes, list)
    assert isinstance(shared_with, list)
    return visibility_of(scopes, str(owner), shared_with)


_INTO: EventValues = {KnowledgeMerged: of_field("into")}
_BY: EventValues = {KnowledgeSuperseded: of_field("by")}
_STATUSES = ", ".join(get_args(ItemStatus))
_READERS: EventValues = {KnowledgeSaved: constant([]), KnowledgeShared: of_method("readers", READERS)}
_WRITERS: EventValues = {KnowledgeSaved: constant([]), KnowledgeShared: of_method("writers", WRITERS)}


def _of_memory(name: str) -> EventValues:
    """A field of the memory that a save states; null where the item is none."""

    def value(c: Counted, _: Row) -> Value:
        memory = getattr(c.fact, "memory", None)
        return None if memory is None else getattr(memory, name)

    return {KnowledgeSaved: EventValue(f"d.memory.{name}", value)}


def _details(c: Counted, _: Row) -> Value:
    memory = getattr(c.fact, "memory", None)
    return None if memory is None else Json(memory.model_dump_json(include=set(DETAILS)))


_LAYER: EventValues = {**_of_memory("layer"), KnowledgePromoted: constant("semantic")}
_DETAILS = ", ".join(f"'{name}': d.memory.{name}" for name in Memory.model_fields if name in DETAILS)
_MEMORY: EventValues = {
    KnowledgeSaved: EventValue(f"CASE WHEN d.memory IS NOT NULL THEN to_json({{{_DETAILS}}}) END", _details),
}
_LATER: dict[str, Any] = {"nullable": True, "added": True}
_ON: dict[str, Any] = {**_LATER, "shown": True}
_LABEL = Derived(visibility(EVERYBODY), _visibility)
# Whether the event's content was erased; null where it has none, so that the value before stays.
_NOW_ERASED = f"CASE WHEN d.content IS NOT NULL THEN d.content = {text(ERASED)} AND {erased_in_batch('content')} END"
_ERASED: EventValues = {fact: EventValue(_NOW_ERASED, _is_erased) for fact in FACTS if "content" in fact.model_fields}
VERSIONS = VersionedView(
    "knowledge_versions",
    "Every version of every item; as of a position: WHERE on valid_from, valid_to",
    tuple(fact for fact in FACTS if fact not in (KnowledgeRated, KnowledgeConfirmed)),
    begins=KnowledgeSaved,
    columns=(
        *OF_EVENT.values(),
        Column("types", "VARCHAR[]", "What it is: tool, plan, strategy, user_profile, …"),
        Column("task", "VARCHAR", "In which situation it helps", different=True),
        Column("content", "VARCHAR", "What is known", different=True),
        Column("tags", "JSON", "A JSON object of the author", different=True),
        Column("scopes", "VARCHAR[]", "Who reads it"),
        Column("owner", "VARCHAR", "Who may change it, as kind:id"),
        Column("visibility", "VARCHAR", "Derived from scopes and ACL: private, shared, org or public", derived=_LABEL),
        Column("resource_ids", "VARCHAR[]", "The resources it names"),
        Column("source", "JSON", "Where it is from, as its author says"),
        Column("score", "INTEGER", "1 to 5; 3 unless somebody said otherwise"),
        Column("status", "VARCHAR", _STATUSES, every=EventValue("item_status", lambda c, _: c.status)),
        Column("first_helpful", "BIGINT", "At its save; cases are in feedback", {KnowledgeSaved: of_field("helpful")}),
        Column("first_harmful", "BIGINT", "At its save; cases are in feedback", {KnowledgeSaved: of_field("harmful")}),
        Column("confidence", "DOUBLE", "As stated at its save; the view knowledge adds the evidence"),
        CREATED_POSITION,
        CREATED_AT,
        Column("merged_into", "VARCHAR", "The item that took its place, where status is merged", _INTO, nullable=True),
        Column("shared_with", "VARCHAR[]", "Entities of its ACL: they read it beside those in its scopes", _READERS),
        Column("writers", "VARCHAR[]", "Those of shared_with who may also revise it", _WRITERS),
        Column(
            "origin",
            "JSON",
            "What its save stated of where it was before: trace, message, dates",
            nullable=True,
            added=True,
        ),
        Column("layer", "VARCHAR", "Of a memory: short, semantic, episodic, procedural", _LAYER, **_LATER),
        Column(
            "kind", "VARCHAR", "Of a memory: preference, decision, follow_up, mood, …", _of_memory("kind"), **_LATER
        ),
        Column("importance", "DOUBLE", "Of a memory: 0 to 1, as stated", _of_memory("importance"), **_LATER),
        Column("lifetime", "BIGINT", "Of a short memory: the seconds that it lives", _of_memory("lifetime"), **_LATER),
        Column("memory", "JSON", "Of a memory: what belongs to its layer; see memory_items", _MEMORY, **_LATER),
        Column("supersedes", "VARCHAR", "The item of which it is a later version, as its save says", **_ON),
        Column("superseded_by", "VARCHAR", "The later version in force, where status is superseded", _BY, **_ON),
        Column(
            "erased",
            "BOOLEAN",
            "Whether its content was erased with a person; [erased] may also be what somebody wrote",
            _ERASED,
            undigested=True,
        ),
    ),
)
_COUNTED = (
    Column("helpful", "BIGINT", "As its save says (else 1), and each helpful verdict since; feedback has those alone"),
    Column("harmful", "BIGINT", "As its save says (else 0), and each harmful verdict since; feedback has those alone"),
    Column("confidence", "DOUBLE", "As stated at its save, moved by the evidence"),
    Column("status", "VARCHAR", _STATUSES),
    Column("created_at", "TIMESTAMPTZ", "When the log kept its save"),
    Column("updated_at", "TIMESTAMPTZ", "When the log kept the last event about it"),
    Column("created_position", "BIGINT", "Position of its save"),
    Column("position", "BIGINT", "Position of the last event about it"),
    Column("version_position", "BIGINT", "Position of the event that made this version"),
    Column("merged_into", "VARCHAR", "The item that took its place, where status is merged"),
    Column("supporting", "BIGINT", "Credited helpful cases and confirmations"),
    Column("opposing", "BIGINT", "Credited harmful cases"),
)
_ELSEWHERE = {*OF_EVENT, *(column.name for column in _COUNTED), "first_helpful", "first_harmful"}
_STATED = [column for column in VERSIONS.columns if column.name not in _ELSEWHERE]
_UPTO = 1 + next(at for at, column in enumerate(_STATED) if column.name == "score")
ITEM = (
    Column("id", "VARCHAR", "Its id, unique in its org"),
    Column("org", "VARCHAR", "The tenant"),
    Column("version", "INTEGER", "How often it was changed, from 1; verdicts make no version"),
    *_STATED[:_UPTO],
    *_COUNTED,
    *_STATED[_UPTO:],
)
"""The columns of the view `knowledge`, and of what the queries read of an item."""
_STATE = (
    *("org", "id", "owner", "version", "status", "helpful", "harmful", "created_position", "created_at"),
    *("version_position", "position", "updated_at", "supporting", "opposing"),
)
JUDGED_BY = (
    Column("writers", "VARCHAR[]", "Who may revise it beside its owner; null for nobody", nullable=True),
    Column("scopes", "VARCHAR[]", "Those of its version"),
    Column("shared_with", "VARCHAR[]", "Those of its version"),
    Column("shared_kind", "VARCHAR", "Its kind, where a project has to approve it", nullable=True),
    Column("lifetime", "BIGINT", "Of a short memory: the seconds that it lives", nullable=True),
    Column("changed_at", "TIMESTAMPTZ", "When the log kept the event that made its version"),
)
"""What the rules judge by, of an item's present version: with it in the state, no rule has to look for that version."""
STATE = [each for name in _STATE for each in ITEM if each.name == name] + [*JUDGED_BY]
"""The columns of an item's state, which ratings change, and by which the rules judge."""
_JUDGED_BY = ", ".join(column.name for column in JUDGED_BY)
OUTDATED = f"""
SELECT s.org, s.id FROM knowledge_state AS s JOIN knowledge_versions AS v ON v.valid_from = s.version_position
WHERE (s.writers, s.scopes, s.shared_with, s.shared_kind, s.lifetime, s.changed_at) IS DISTINCT FROM (
    CASE WHEN len(v.writers) > 0 THEN v.writers END, v.scopes, v.shared_with,
    CASE WHEN v.kind IN ({among(SHARED_KINDS)}) THEN v.kind END, CASE WHEN v.layer = 'short' THEN v.lifetime END,
    v.valid_from_time)
"""
"""The query of the items that would be judged by something else than their present version."""
SHOWN = VERSIONS.names(lambda column: column.shown)
"""The columns that answers about an item have where they are not null."""
WHILE = {"merged_into": "merged", "superseded_by": "superseded"}
"""The columns that hold a value only while the item has a status."""
_COMPUTED = {
    "confidence": CONFIDENCE.format(stated="confidence", supporting="supporting", opposing="opposing"),
    "lifetime": "CASE WHEN layer = 'short' THEN lifetime END",
    **{name: f"CASE WHEN status = '{status}' THEN {name} END" for name, status in WHILE.items()},
}
_SELECT = "SELECT " + ", ".join(f"{_COMPUTED.get(c.name, c.name)} AS {c.name}" for c in ITEM)
_OF_BOTH = VERSIONS.names(lambda column: column.name in _STATE)

TABLES = f"""
{VERSIONS.tables()}
{create_table("knowledge_state", "Internal: the part of an item that ratings change; read the view knowledge", STATE)}
CREATE VIEW knowledge AS {_SELECT} FROM (
    SELECT s.* EXCLUDE ({_JUDGED_BY}), v.* EXCLUDE ({", ".join(_OF_BOTH)})
    FROM knowledge_state s JOIN knowledge_versions v ON v.valid_from = s.version_position
);
COMMENT ON VIEW knowledge IS 'What holds now: one row an item, retired ones included (status)';
{comments("knowledge", ITEM)}
CREATE MACRO knowledge_at(asked) AS TABLE {_SELECT} FROM (
    SELECT v.*, v.valid_from AS version_position,
        v.first_helpful + coalesce(f.helpful, 0) AS helpful, v.first_harmful + coalesce(f.harmful, 0) AS harmful,
        coalesce(f.supporting, 0) AS supporting, coalesce(f.opposing, 0) AS opposing,
        greatest(v.valid_from, f.last_position) AS position, greatest(v.valid_from_time, f.last_time) AS updated_at
    FROM knowledge_versions v
    LEFT JOIN (
        SELECT org, knowledge_id, count(*) FILTER (verdict = 'helpful') AS helpful,
            count(*) FILTER (verdict = 'harmful') AS harmful,
            {SUPPORTING} AS supporting, {OPPOSING} AS opposing,
            max(position) AS last_position, max(time) AS last_time
        FROM feedback WHERE position <= asked GROUP BY org, knowledge_id
    ) f ON f.org = v.org AND f.knowledge_id = v.id
    WHERE v.valid_from <= asked AND (v.valid_to IS NULL OR v.valid_to > asked)
);
COMMENT ON MACRO TABLE knowledge_at IS 'Internal: knowledge_as_of, of a position';
"""
MADE = """(
    SELECT *, first_helpful AS helpful, first_harmful AS harmful, 0 AS supporting, 0 AS opposing,
        valid_from_time AS updated_at, valid_from AS position, valid_from AS version_position
    FROM knowledge_versions
)"""
"""The versions as they were made, with the columns of ITEM: without the verdicts that came after."""

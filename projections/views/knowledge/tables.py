"""Tables of knowledge: append-only versions, a narrow row of state for each item, and the views over both.

A rating updates only the narrow row; content is written once for each version.
"""

from __future__ import annotations

from projections.views.knowledge.evidence import CONFIDENCE, OPPOSING, SUPPORTING

_CONFIDENCE_THEN = CONFIDENCE.format(
    stated="v.confidence", supporting="coalesce(f.supporting, 0)", opposing="coalesce(f.opposing, 0)"
)

TABLES = f"""
CREATE TABLE knowledge_versions (
    org VARCHAR NOT NULL, id VARCHAR NOT NULL, version INTEGER NOT NULL, change VARCHAR NOT NULL,
    valid_from BIGINT NOT NULL, valid_to BIGINT, valid_from_time TIMESTAMPTZ NOT NULL,
    valid_to_time TIMESTAMPTZ, actor VARCHAR NOT NULL, trace_id VARCHAR, message_id VARCHAR,
    event_id VARCHAR NOT NULL, types VARCHAR[] NOT NULL, task VARCHAR NOT NULL, content VARCHAR NOT NULL,
    tags JSON NOT NULL, scopes VARCHAR[] NOT NULL, owner VARCHAR NOT NULL, visibility VARCHAR NOT NULL,
    resource_ids VARCHAR[] NOT NULL, source JSON NOT NULL, score INTEGER NOT NULL, status VARCHAR NOT NULL,
    first_helpful BIGINT NOT NULL, first_harmful BIGINT NOT NULL, confidence DOUBLE NOT NULL,
    created_position BIGINT NOT NULL, created_at TIMESTAMPTZ NOT NULL, merged_into VARCHAR,
    shared_with VARCHAR[] NOT NULL, writers VARCHAR[] NOT NULL, origin JSON, erased BOOLEAN NOT NULL
);
COMMENT ON TABLE knowledge_versions IS 'Every version of every item; as of a position: WHERE on valid_from, valid_to';
COMMENT ON COLUMN knowledge_versions.change IS
    'What made it: saved, revised, scored, retired, restored, shared, evolved, reverted, absorbed, merged, unmerged';
COMMENT ON COLUMN knowledge_versions.valid_from IS 'Log position of the event that made this version';
COMMENT ON COLUMN knowledge_versions.valid_to IS 'Log position of the event that ended it; null while it holds';
COMMENT ON COLUMN knowledge_versions.visibility IS 'Derived from scopes and ACL: private, shared, org or public';
COMMENT ON COLUMN knowledge_versions.confidence IS 'As stated at its save; the view knowledge adds the evidence';
COMMENT ON COLUMN knowledge_versions.merged_into IS 'The item that took its place, where status is merged';
COMMENT ON COLUMN knowledge_versions.shared_with IS 'Entities of its ACL: they read it beside those in its scopes';
COMMENT ON COLUMN knowledge_versions.writers IS 'Those of shared_with who may also revise it';
COMMENT ON COLUMN knowledge_versions.origin IS
    'trace_id, message_id, created_at, updated_at as its save states them of the whole item; null where it states none';
COMMENT ON COLUMN knowledge_versions.erased IS
    'Whether its content was erased with a person; [erased] may also be what somebody wrote';
COMMENT ON COLUMN knowledge_versions.first_helpful IS 'Helpful count at its save; cases are in feedback';
CREATE TABLE knowledge_state (
    org VARCHAR NOT NULL, id VARCHAR NOT NULL, owner VARCHAR NOT NULL, version INTEGER NOT NULL,
    status VARCHAR NOT NULL, helpful BIGINT NOT NULL, harmful BIGINT NOT NULL,
    created_position BIGINT NOT NULL, created_at TIMESTAMPTZ NOT NULL,
    version_position BIGINT NOT NULL, position BIGINT NOT NULL, updated_at TIMESTAMPTZ NOT NULL,
    supporting BIGINT NOT NULL, opposing BIGINT NOT NULL, writers VARCHAR[]
);
COMMENT ON COLUMN knowledge_state.supporting IS 'Credited helpful cases and confirmations: evidence for the item';
COMMENT ON COLUMN knowledge_state.opposing IS 'Credited harmful cases: evidence against the item';
COMMENT ON TABLE knowledge_state IS 'Internal: the part of an item that ratings change; read the view knowledge';
CREATE VIEW knowledge AS
    SELECT s.id, s.org, s.version, v.types, v.task, v.content, v.tags, v.scopes, s.owner, v.visibility,
        v.resource_ids, v.source, v.score, s.helpful, s.harmful,
        {CONFIDENCE.format(stated="v.confidence", supporting="s.supporting", opposing="s.opposing")} AS confidence,
        s.status, s.created_at, s.updated_at, s.created_position, s.position, s.version_position,
        CASE WHEN s.status = 'merged' THEN v.merged_into END AS merged_into, s.supporting, s.opposing,
        v.shared_with, v.writers, v.origin, v.erased
    FROM knowledge_state s JOIN knowledge_versions v ON v.valid_from = s.version_position;
COMMENT ON VIEW knowledge IS 'What holds now: one row an item, retired ones included (status)';
COMMENT ON COLUMN knowledge.id IS 'Its id, unique in its org';
COMMENT ON COLUMN knowledge.org IS 'The tenant';
COMMENT ON COLUMN knowledge.version IS 'How often it was changed, from 1; verdicts make no version';
COMMENT ON COLUMN knowledge.types IS 'What it is: tool, plan, strategy, user_profile, …';
COMMENT ON COLUMN knowledge.task IS 'In which situation it helps';
COMMENT ON COLUMN knowledge.content IS 'What is known';
COMMENT ON COLUMN knowledge.tags IS 'A JSON object of the author';
COMMENT ON COLUMN knowledge.scopes IS 'Who reads it';
COMMENT ON COLUMN knowledge.owner IS 'Who may change it, as kind:id';
COMMENT ON COLUMN knowledge.visibility IS 'Derived from scopes and ACL: private, shared, org or public';
COMMENT ON COLUMN knowledge.resource_ids IS 'The resources it names';
COMMENT ON COLUMN knowledge.source IS 'Where it is from, as its author says';
COMMENT ON COLUMN knowledge.score IS '1 to 5; 3 unless somebody said otherwise';
COMMENT ON COLUMN knowledge.helpful IS
    'As its save says (1 unless it says otherwise), and each helpful verdict since; verdicts alone are in feedback';
COMMENT ON COLUMN knowledge.harmful IS
    'As its save says (0 unless it says otherwise), and each harmful verdict since; verdicts alone are in feedback';
COMMENT ON COLUMN knowledge.confidence IS 'As stated at its save, moved by the evidence';
COMMENT ON COLUMN knowledge.status IS 'active, retired or merged';
COMMENT ON COLUMN knowledge.created_at IS 'When the log kept its save';
COMMENT ON COLUMN knowledge.updated_at IS 'When the log kept the last event about it';
COMMENT ON COLUMN knowledge.created_position IS 'Position of its save';
COMMENT ON COLUMN knowledge.position IS 'Position of the last event about it';
COMMENT ON COLUMN knowledge.version_position IS 'Position of the event that made this version';
COMMENT ON COLUMN knowledge.merged_into IS 'The item that took its place, where status is merged';
COMMENT ON COLUMN knowledge.supporting IS 'Credited helpful cases and confirmations';
COMMENT ON COLUMN knowledge.opposing IS 'Credited harmful cases';
COMMENT ON COLUMN knowledge.shared_with IS 'Entities of its ACL: they read it beside those in its scopes';
COMMENT ON COLUMN knowledge.writers IS 'Those of shared_with who may also revise it';
COMMENT ON COLUMN knowledge.origin IS 'What its save stated of where it was before: trace, message, dates';
COMMENT ON COLUMN knowledge.erased IS
    'Whether its content was erased with a person; [erased] may also be what somebody wrote';
CREATE MACRO knowledge_at(asked) AS TABLE
    SELECT v.id, v.org, v.version, v.types, v.task, v.content, v.tags, v.scopes, v.owner, v.visibility,
        v.resource_ids, v.source, v.score,
        v.first_helpful + coalesce(f.helpful, 0) AS helpful,
        v.first_harmful + coalesce(f.harmful, 0) AS harmful,
        {_CONFIDENCE_THEN} AS confidence,
        v.status, v.created_at,
        greatest(v.valid_from_time, f.last_time) AS updated_at,
        v.created_position, greatest(v.valid_from, f.last_position) AS position,
        v.valid_from AS version_position,
        CASE WHEN v.status = 'merged' THEN v.merged_into END AS merged_into,
        coalesce(f.supporting, 0) AS supporting, coalesce(f.opposing, 0) AS opposing, v.shared_with, v.writers,
        v.origin, v.erased
    FROM knowledge_versions v
    LEFT JOIN (
        SELECT org, knowledge_id, count(*) FILTER (verdict = 'helpful') AS helpful,
            count(*) FILTER (verdict = 'harmful') AS harmful,
            {SUPPORTING} AS supporting, {OPPOSING} AS opposing,
            max(position) AS last_position, max(time) AS last_time
        FROM feedback WHERE position <= asked GROUP BY org, knowledge_id
    ) f ON f.org = v.org AND f.knowledge_id = v.id
    WHERE v.valid_from <= asked AND (v.valid_to IS NULL OR v.valid_to > asked);
COMMENT ON MACRO TABLE knowledge_at IS 'Internal: knowledge_as_of, of a position';
"""

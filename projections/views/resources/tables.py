"""Tables of resources: append-only versions, and the views over them. A secret is stored sealed, as in the log.

Whether a resource has expired is computed when it is read, never when it is folded. A time that cannot be parsed counts
as expired.
"""

from projections.fold_kit.visibility import visibility

HAS_SECURE = "secure_body NOT IN ('', '[erased]')"

_COLUMNS = f"""id, org, version, title, body, {HAS_SECURE} AS has_secure, content_type, metadata,
        TRY_CAST(metadata->>'expires_at' AS TIMESTAMPTZ) AS expires_at,
        coalesce(TRY_CAST(metadata->>'expires_at' AS TIMESTAMPTZ) <= now(),
            (metadata->>'expires_at') IS NOT NULL) AS expired,
        scopes, owner,
        {visibility()} AS visibility,
        shared_with, status, created_at, valid_from_time AS updated_at, created_position, valid_from AS position
    FROM resource_versions"""

TABLES = f"""
CREATE TABLE resource_versions (
    org VARCHAR NOT NULL, id VARCHAR NOT NULL, version INTEGER NOT NULL, change VARCHAR NOT NULL,
    valid_from BIGINT NOT NULL, valid_to BIGINT, valid_from_time TIMESTAMPTZ NOT NULL,
    valid_to_time TIMESTAMPTZ, actor VARCHAR NOT NULL, trace_id VARCHAR, message_id VARCHAR,
    event_id VARCHAR NOT NULL, title VARCHAR NOT NULL, body VARCHAR NOT NULL, secure_body VARCHAR NOT NULL,
    content_type VARCHAR NOT NULL, metadata JSON NOT NULL, scopes VARCHAR[] NOT NULL, owner VARCHAR NOT NULL,
    shared_with VARCHAR[] NOT NULL, status VARCHAR NOT NULL,
    created_position BIGINT NOT NULL, created_at TIMESTAMPTZ NOT NULL
);
COMMENT ON TABLE resource_versions IS 'Every version of every resource; as of a position: by valid_from, valid_to';
COMMENT ON COLUMN resource_versions.change IS 'What made it: saved, retired, restored or secret_destroyed';
COMMENT ON COLUMN resource_versions.valid_from IS 'Log position of the event that made this version';
COMMENT ON COLUMN resource_versions.valid_to IS 'Log position of the event that ended it; null while it holds';
COMMENT ON COLUMN resource_versions.secure_body IS 'Sealed with the key of the resource; empty when there is no secret';
COMMENT ON COLUMN resource_versions.shared_with IS 'Who may read the secret beside the owner';
CREATE VIEW resources AS SELECT {_COLUMNS} WHERE valid_to IS NULL;
COMMENT ON VIEW resources IS 'What holds now: one row a resource, retired ones included (status); never a secret';
CREATE MACRO resources_at(asked) AS TABLE
    SELECT {_COLUMNS} WHERE valid_from <= asked AND (valid_to IS NULL OR valid_to > asked);
COMMENT ON MACRO TABLE resources_at IS 'Internal: resources_as_of, of a position';
"""

"""Tables of resources: append-only versions, and the views over them. A secret is stored sealed, as in the log.

Whether a resource has expired is computed when it is read, never when it is folded. A time that cannot be parsed counts
as expired.
"""

from __future__ import annotations

from ledger.events.resource import FACTS, ResourceRestored, ResourceRetired, ResourceSaved, ResourceSecretDestroyed
from projections.fold_kit.versioned_view import (
    CREATED_AT,
    CREATED_POSITION,
    OF_EVENT,
    Column,
    EventValue,
    EventValues,
    VersionedView,
    constant,
    now_and_as_of,
)
from projections.fold_kit.visibility import visibility

HAS_SECURE = "secure_body NOT IN ('', '[erased]')"

_SECRET: EventValues = {
    ResourceSaved: EventValue("coalesce(d.secure_body, '')", lambda c, _: getattr(c.fact, "secure_body", None) or ""),
    ResourceSecretDestroyed: constant(""),
}
_STATUS: EventValues = {
    ResourceSaved: constant("active"),
    ResourceRetired: constant("retired"),
    ResourceRestored: constant("active"),
}
VERSIONS = VersionedView(
    "resource_versions",
    "Every version of every resource; as of a position: by valid_from, valid_to",
    FACTS,
    (
        *OF_EVENT.values(),
        Column("title", "VARCHAR"),
        Column("body", "VARCHAR"),
        Column("secure_body", "VARCHAR", "Sealed with the key of the resource; empty when there is no secret", _SECRET),
        Column("content_type", "VARCHAR"),
        Column("metadata", "JSON"),
        Column("scopes", "VARCHAR[]"),
        Column("owner", "VARCHAR"),
        Column("shared_with", "VARCHAR[]", "Who may read the secret beside the owner"),
        Column("status", "VARCHAR", "active or retired", _STATUS),
        CREATED_POSITION,
        CREATED_AT,
    ),
)

TABLES = VERSIONS.tables() + now_and_as_of(
    "resources",
    "What holds now: one row a resource, retired ones included (status); never a secret",
    VERSIONS.table,
    f"""id, org, version, title, body, {HAS_SECURE} AS has_secure, content_type, metadata,
        TRY_CAST(metadata->>'expires_at' AS TIMESTAMPTZ) AS expires_at,
        coalesce(TRY_CAST(metadata->>'expires_at' AS TIMESTAMPTZ) <= now(),
            (metadata->>'expires_at') IS NOT NULL) AS expired,
        scopes, owner, {visibility()} AS visibility,
        shared_with, status, created_at, valid_from_time AS updated_at, created_position, valid_from AS position""",
)

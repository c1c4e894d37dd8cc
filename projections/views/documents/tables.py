"""Tables of documents: append-only versions, and the views over them: what holds now, and its chunks in their order."""

from __future__ import annotations

from ledger.events.document import FACTS, DocumentIngested, DocumentRemoved
from projections.fold_kit.versioned_view import (
    CREATED_AT,
    CREATED_POSITION,
    OF_EVENT,
    Column,
    EventValues,
    VersionedView,
    constant,
    now_and_as_of,
)
from projections.fold_kit.visibility import visibility

_STATUS: EventValues = {DocumentIngested: constant("active"), DocumentRemoved: constant("removed")}
VERSIONS = VersionedView(
    "document_versions",
    "Every version of every document; as of a position: by valid_from, valid_to",
    FACTS,
    (
        *OF_EVENT.values(),
        Column("title", "VARCHAR"),
        Column("content_type", "VARCHAR", "Such as text/markdown or application/pdf"),
        Column("url", "VARCHAR", "Where it is from, as its owner says; nothing fetches it", nullable=True),
        Column("summary", "VARCHAR"),
        Column("headings", "VARCHAR[]", "Of its sections; empty: what stands before the first heading"),
        Column("levels", "INTEGER[]", "Of each heading: 1 to 6"),
        Column("starts", "INTEGER[]", "The number of the first chunk of each section, from 0"),
        Column("summaries", "VARCHAR[]", "Of each section"),
        Column("chunks", "VARCHAR[]", "The items that say what it says, in its order"),
        Column("digests", "VARCHAR", "Of what it says at each chunk, separated by blanks"),
        Column("characters", "BIGINT"),
        Column("resource_ids", "VARCHAR[]", "The resources that keep the original"),
        Column("scopes", "VARCHAR[]"),
        Column("owner", "VARCHAR"),
        Column("status", "VARCHAR", "active or removed", _STATUS),
        CREATED_POSITION,
        CREATED_AT,
    ),
)

TABLES = VERSIONS.tables() + now_and_as_of(
    "documents",
    "What holds now: one row a document, removed ones included (status)",
    VERSIONS.table,
    f"""id, org, version, title, content_type, url, summary, headings, levels, starts, summaries, chunks, digests,
        characters, resource_ids, scopes, owner, []::VARCHAR[] AS shared_with, {visibility()} AS visibility,
        status, created_at, valid_from_time AS updated_at, created_position, valid_from AS position""",
)

"""Fold of profile events: every version of a memory is kept; `profiles` has the current one of each."""

from __future__ import annotations

from typing import Any

import duckdb
import orjson
import pyarrow as pa

from ledger.events.profile import MEMORIES, ProfileFact
from projections.fold_kit.close_versions import end_versions
from projections.fold_kit.decisions import Counted
from projections.fold_kit.sql_text import Json, Moment, Value, among, insert
from projections.fold_kit.workbench import Facts, Workbench, table_of
from projections.views.profiles.merge_patch import merge_patch

# Version 5 of RFC 9562, as `ledger/events/profile.py:memory_id` makes it: SHA-1 of the namespace and the name.
_SHA1 = f"sha1(unhex('{MEMORIES.hex}') || encode(org || chr(10) || owner || '/' || memory_type))"
_ID = f"""CAST(list_transform([{_SHA1}], lambda h: substr(h, 1, 12) || '5' || substr(h, 14, 3)
            || substr('89ab', CAST('0x' || substr(h, 17, 1) AS INTEGER) % 4 + 1, 1) || substr(h, 18, 15))[1] AS UUID)"""

TABLES = f"""
CREATE TABLE profile_versions (
    org VARCHAR NOT NULL, owner VARCHAR NOT NULL, memory_type VARCHAR NOT NULL, version INTEGER NOT NULL,
    change VARCHAR NOT NULL, status VARCHAR NOT NULL, content JSON NOT NULL,
    valid_from BIGINT NOT NULL, valid_to BIGINT,
    valid_from_time TIMESTAMPTZ NOT NULL, valid_to_time TIMESTAMPTZ,
    created_at TIMESTAMPTZ NOT NULL, event_id VARCHAR NOT NULL, trace_id VARCHAR, message_id VARCHAR
);
COMMENT ON TABLE profile_versions IS 'Every version of every profile; valid_from and valid_to are log positions';
COMMENT ON COLUMN profile_versions.valid_to IS 'Position of the event that ended this version; null while it holds';
CREATE VIEW profiles AS
    SELECT {_ID} AS id, org, owner, memory_type, content, status, version, created_at,
        valid_from_time AS updated_at, valid_from AS position
    FROM profile_versions WHERE valid_to IS NULL;
COMMENT ON VIEW profiles IS 'The current profiles: two memories a user, user and work';
COMMENT ON COLUMN profiles.id IS 'Of the memory, the same for good; made of org, owner and memory_type';
CREATE MACRO profiles_at(asked) AS TABLE
    SELECT {_ID} AS id, org, owner, memory_type, content, status, version, created_at,
        valid_from_time AS updated_at, valid_from AS position
    FROM profile_versions WHERE valid_from <= asked AND (valid_to IS NULL OR valid_to > asked);
COMMENT ON MACRO TABLE profiles_at IS 'Internal: profiles_as_of, of a position';
"""

_SCHEMA = pa.schema(
    [
        ("position", pa.int64()),
        ("closes", pa.int64()),
        ("version", pa.int32()),
        ("status", pa.string()),
        ("content", pa.string()),
    ]
)


def fold(bench: Workbench, facts: Facts) -> None:
    """Apply the batch's profile events in order; profiles are few, so the merge patch is plain Python."""
    profile_facts = [fact for fact in facts if fact.entity() == "profile"]
    if not profile_facts:
        return
    data = " UNION ALL ".join(f"SELECT position, data FROM {table_of(fact)}" for fact in profile_facts)
    events = bench.rows(f"""
        SELECT a.position, a.type, a.item_version, a.closes, p.data
        FROM accepted a JOIN ({data}) p ON p.position = a.position ORDER BY a.position
    """)
    before = _contents_at(bench.con, "SELECT closes FROM accepted")
    rows = [
        (position, closes, version, *_content(before, position, kind, closes, orjson.loads(said)))
        for position, kind, version, closes, said in events
    ]
    if not rows:
        return
    changes = bench.load("profile_changes", zip(*rows, strict=True), _SCHEMA)
    bench.run(f"""
        INSERT INTO profile_versions
        SELECT a.org, regexp_extract(a.entity_id, '^(.*)/([^/]*)$', 1), regexp_extract(a.entity_id, '[^/]*$'),
            c.version, split_part(a.type, '.', 2), c.status, json(c.content), c.position, NULL, a.stream_time, NULL,
            coalesce(first_value(f.created_at) OVER w, first_value(a.stream_time) OVER w),
            a.event_id, a.trace_id, a.message_id
        FROM {changes} c
        JOIN accepted a ON a.position = c.position
        LEFT JOIN profile_versions f ON f.valid_from = c.closes
        WINDOW w AS (PARTITION BY a.org, a.entity_id ORDER BY c.position)
        ORDER BY c.position
    """)
    bench.run(f"""
        UPDATE profile_versions SET valid_to = c.position, valid_to_time = a.stream_time
        FROM {changes} c JOIN accepted a ON a.position = c.position
        WHERE profile_versions.valid_from = c.closes
    """)


def fold_few(con: duckdb.DuckDBPyConnection, counted: list[Counted]) -> None:
    """The same for a few events."""
    made = [c for c in counted if isinstance(c.fact, ProfileFact)]
    if not made:
        return
    closed = [c for c in made if c.closes is not None]
    before = _contents_at(con, among(c.closes for c in closed if c.closes is not None))
    created = dict(
        con.execute(
            "SELECT valid_from, epoch_us(created_at) FROM profile_versions "
            f"WHERE valid_from IN ({among(c.closes for c in closed if c.closes is not None)})"
        ).fetchall()
    )
    rows: list[tuple[Value, ...]] = []
    for c in made:
        status, content = _content(before, c.position, c.fact.name, c.closes, c.fact.model_dump())
        created[c.position] = c.stored_us if c.closes is None else created[c.closes]
        owner, _, memory_type = c.entity_id.rpartition("/")
        rows.append(
            (
                *(c.org, owner, memory_type, c.version, c.fact.verb(), status, Json(content), c.position, None),
                *(Moment(c.stored_us), None, Moment(created[c.position]), c.envelope.id, c.trace_id, c.message_id),
            )
        )
    insert(con, "profile_versions", rows)
    end_versions(con, "profile_versions", closed)


def _contents_at(con: duckdb.DuckDBPyConnection, positions: str) -> dict[int, Any]:
    """The contents of versions by position; `positions` is the SQL inside IN (…)."""
    rows = con.execute(f"SELECT valid_from, content FROM profile_versions WHERE valid_from IN ({positions})").fetchall()
    return {position: orjson.loads(content) for position, content in rows}


def _content(
    contents: dict[int, Any], position: int, kind: str, closes: int | None, said: dict[str, Any]
) -> tuple[str, str]:
    """Status and content (JSON text) after an event; adds the content to `contents`."""
    before = {} if closes is None else contents.get(closes, {})
    match kind:
        case "profile.patched":
            now = merge_patch(before, said["patch"])
        case "profile.disabled":
            now = before
        case _:
            now = said["content"]
    contents[position] = now
    return "disabled" if kind == "profile.disabled" else "active", orjson.dumps(now).decode()

"""Fold of profile events: every version of a memory is kept; `profiles` has the current one of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pyarrow as pa

from ledger.events.profile import FACTS, MEMORIES, ProfileDisabled
from projections.fold_kit.decisions import Counted
from projections.fold_kit.sql_text import Json, Value
from projections.fold_kit.versioned_view import (
    CREATED_AT,
    OF_EVENT,
    Column,
    EventValue,
    Row,
    VersionedView,
    constant,
    now_and_as_of,
)
from projections.fold_kit.workbench import Facts, Workbench, table_of
from projections.views.profiles.merge_patch import merge_patch

# Version 5 of RFC 9562, as `ledger/events/profile.py:memory_id` makes it: SHA-1 of the namespace and the name.
_SHA1 = f"sha1(unhex('{MEMORIES.hex}') || encode(org || chr(10) || owner || '/' || memory_type))"
_ID = f"""CAST(list_transform([{_SHA1}], lambda h: substr(h, 1, 12) || '5' || substr(h, 14, 3)
            || substr('89ab', CAST('0x' || substr(h, 17, 1) AS INTEGER) % 4 + 1, 1) || substr(h, 18, 15))[1] AS UUID)"""
_CONTENTS = "profile_contents"


def _content(stated: Mapping[str, Any], before: Any) -> Any:
    """The content after an event with this data."""
    if "patch" in stated:
        return merge_patch(before, stated["patch"])
    return stated.get("content", before)


def _content_after(c: Counted, before: Row) -> Value:
    content = before.get("content")
    now = _content(c.fact.model_dump(), orjson.loads(content.text) if isinstance(content, Json) else {})
    return Json(orjson.dumps(now).decode())


_AFTER = EventValue(f"(SELECT json(content) FROM loaded_{_CONTENTS} n WHERE n.position = e.position)", _content_after)
_STATUS = {fact: constant("disabled" if fact is ProfileDisabled else "active") for fact in FACTS}
VERSIONS = VersionedView(
    "profile_versions",
    "Every version of every profile; valid_from and valid_to are log positions",
    FACTS,
    (
        OF_EVENT["org"],
        Column("owner", "VARCHAR"),
        Column("memory_type", "VARCHAR"),
        *(OF_EVENT[name] for name in ("version", "change")),
        Column("status", "VARCHAR", by=_STATUS),
        Column("content", "JSON", every=_AFTER),
        *(OF_EVENT[name] for name in ("valid_from", "valid_to", "valid_from_time", "valid_to_time")),
        CREATED_AT,
        *(OF_EVENT[name] for name in ("event_id", "trace_id", "message_id")),
    ),
)
TABLES = (
    VERSIONS.tables()
    + now_and_as_of(
        "profiles",
        "The current profiles: two memories a user, user and work",
        VERSIONS.table,
        f"""{_ID} AS id, org, owner, memory_type, content, status, version, created_at,
            valid_from_time AS updated_at, valid_from AS position""",
    )
    + "COMMENT ON COLUMN profiles.id IS 'Of the memory, the same for good; made of org, owner and memory_type';"
)
fold_few = VERSIONS.fold_few


def fold(bench: Workbench, facts: Facts) -> None:
    """Append the batch's versions, with the contents that patches make; profiles are few, so these are plain Python."""
    data = " UNION ALL ".join(f"SELECT position, data FROM {table_of(fact)}" for fact in facts if fact in FACTS)
    if not data:
        return
    events = bench.rows(f"""
        SELECT position, closes, p.data FROM accepted JOIN ({data}) p USING (position) ORDER BY position
    """)
    before = bench.rows(
        "SELECT valid_from, content FROM profile_versions WHERE valid_from IN (SELECT closes FROM accepted)"
    )
    contents = {position: orjson.loads(content) for position, content in before}
    for position, closes, stated in events:
        contents[position] = _content(orjson.loads(stated), contents.get(closes, {}))
    texts = [orjson.dumps(content).decode() for content in contents.values()]
    bench.load(_CONTENTS, (list(contents), texts), pa.schema([("position", pa.int64()), ("content", pa.string())]))
    VERSIONS.fold(bench, facts)

"""Fold of profile events: every version of a memory is kept; `profiles` has the current one of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pyarrow as pa

from ledger.event import Fact
from ledger.events.profile import FACTS, MEMORIES, ProfileDisabled
from projections.fold_kit import late_compute as pc
from projections.fold_kit.decisions import Counted
from projections.fold_kit.sql_text import Json, Value, among
from projections.fold_kit.text_column import text_column
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
_MADE = "loaded_profile_versions"


def _content(stated: Mapping[str, Any], before: Any) -> Any:
    """The content after an event with this data."""
    if "patch" in stated:
        return merge_patch(before, stated["patch"])
    return stated.get("content", before)


def _content_after(c: Counted, before: Row) -> Value:
    content = before.get("content")
    now = _content(c.fact.model_dump(), orjson.loads(content.text) if isinstance(content, Json) else {})
    return Json(orjson.dumps(now).decode())


# Of a large batch `fold` writes the contents itself.
_AFTER = EventValue("NULL", _content_after)
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
        Column("content", "JSON", every=_AFTER, different=True),
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


_OF_EVENT = ("position", "stream_time", "org", "event_id", "trace_id", "message_id", "item_version", "closes")
_INSERT = f"""
INSERT INTO profile_versions BY NAME
SELECT org, owner, memory_type, item_version AS version, change, status, content::JSON AS content,
    position AS valid_from, valid_to, stream_time AS valid_from_time, make_timestamptz(valid_to_us) AS valid_to_time,
    make_timestamptz(created_us) AS created_at, event_id, trace_id, message_id
FROM {_MADE}
"""
_BEFORE = """
SELECT valid_from, content, epoch_us(created_at) FROM profile_versions WHERE valid_from IN ({positions})
"""
_END = f"""
UPDATE profile_versions SET valid_to = e.position, valid_to_time = e.stream_time
FROM {_MADE} e WHERE e.closes < {{first}} AND profile_versions.valid_from = e.closes
"""


def fold(bench: Workbench, facts: Facts) -> None:
    """Append the batch's versions. Each content follows from the one before it, so that they are computed in Python.

    A version that ends within the batch is written as it ends; only those of before the batch are changed.
    """
    tables = [_rows(fact, bench.presented(table_of(fact))) for fact in FACTS if fact in facts]
    if not tables or not any(map(len, tables)):
        return
    made = pa.concat_tables(tables).sort_by("position")
    positions, closes = made["position"].to_pylist(), made["closes"].to_pylist()
    moments = made["stream_time"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_pylist()
    first = positions[0]
    before = [each for each in closes if each is not None and each < first]
    contents, created = dict[int, Any](), dict[int, int]()
    if before:
        for position, content, moment in bench.rows(_BEFORE.format(positions=among(before))):
            contents[position], created[position] = orjson.loads(content), moment
    texts, ends = list[bytes](), dict[int, tuple[int, int]]()
    stated = zip(positions, closes, moments, made["patch"].to_pylist(), made["content"].to_pylist(), strict=True)
    for position, closed, moment, patch, content in stated:
        if closed is not None:
            ends[closed] = position, moment
        now = contents.pop(closed, {})
        if patch is not None:
            now = merge_patch(now, orjson.loads(patch))
        elif content is not None:
            now = orjson.loads(content)
        contents[position], created[position] = now, created.get(closed, moment)
        texts.append(orjson.dumps(now))
    ended = [ends.get(position, (None, None)) for position in positions]
    made = made.drop_columns(["patch", "content"])
    for name, column in (
        ("content", text_column(texts)),
        ("created_us", pa.array([created[position] for position in positions], pa.int64())),
        ("valid_to", pa.array([position for position, _ in ended], pa.int64())),
        ("valid_to_us", pa.array([moment for _, moment in ended], pa.int64())),
    ):
        made = made.append_column(name, column)
    bench.present({_MADE: made})
    bench.run(_INSERT)
    if before:
        bench.run(_END.format(first=first))


def _rows(fact: type[Fact], events: pa.Table) -> pa.Table:
    """What a version is made of: columns of its event, and the patch or the content that it states, as JSON."""
    rows = events.select(_OF_EVENT)
    for name in ("owner", "memory_type"):
        rows = rows.append_column(name, pc.struct_field(events["d"], [name]))
    for name in ("patch", "content"):
        own = pc.struct_field(events["d"], [name]) if name in fact.model_fields else pa.nulls(len(rows))
        rows = rows.append_column(name, pc.cast(own, pa.string()))
    for name, value in (("change", fact.verb()), ("status", "disabled" if fact is ProfileDisabled else "active")):
        rows = rows.append_column(name, pa.repeat(value, len(rows)))
    return rows

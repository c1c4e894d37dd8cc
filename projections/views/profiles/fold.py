"""Fold of profile events: every version of a memory is kept; `profiles` has the current one of each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from ledger.event import Fact
from ledger.events.profile import FACTS, MEMORIES, ProfileDisabled
from projections.fold_kit import late_compute as pc
from projections.fold_kit.decisions import Counted
from projections.fold_kit.sql_text import Json, Value, among, text
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


_OF_EVENT = (
    *("position", "stream_time", "org", "entity_id", "event_id", "trace_id", "message_id", "item_version", "closes"),
)
_STATED = ("patch", "content")
_BY_MEMORY = ("org", "entity_id", "position")
_Step = tuple[bool, int, int, bytes | None, bytes | None]
"""Of an event: whether it is the first of its memory, the version it follows, its time, its patch and its content."""
# orjson spells control characters and numbers with exponents in another way than DuckDB, which spells all other JSON.
# To look for the rarer character first takes a fraction of the time.
_MAY_DIFFER = " OR ".join(
    f"(contains(content::VARCHAR, {text(rare)}) AND contains(content::VARCHAR, {text(mark)}))"
    for rare, mark in (("\\", "\\u"), ("-", "e-"), ("+", "e+"))
)
_INSERT = f"""
INSERT INTO profile_versions BY NAME
SELECT org, owner, memory_type, item_version AS version, change, status,
    CASE WHEN {_MAY_DIFFER} THEN json(content) ELSE content END AS content, position AS valid_from, valid_to,
    stream_time AS valid_from_time, valid_to_time, make_timestamptz(created_us) AS created_at,
    event_id, trace_id, message_id
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

    They are computed and written memory by memory, so that what is changed next is still in the processor's cache. A
    version that ends within the batch is written as it ends; only those of before the batch are changed.
    """
    tables = [_rows(fact, bench.presented(table_of(fact))) for fact in FACTS if fact in facts]
    if not tables or not any(map(len, tables)):
        return
    rows = pa.concat_tables(tables)
    order = pc.sort_indices(rows, [(name, "ascending") for name in _BY_MEMORY])
    made = rows.drop_columns(_STATED).take(order)
    positions, closes = made["position"].to_numpy(), pc.fill_null(made["closes"], 0).to_numpy()
    begins = np.append(True, closes[1:] != positions[:-1])  # the first of its memory in the batch
    first = int(positions.min())
    before = closes[(closes > 0) & (closes < first)].tolist()
    earlier = {at: (content, us) for at, content, us in bench.rows(_BEFORE.format(positions=among(before)))}
    moments = made["stream_time"].cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    stated = (map(rows[name].to_pylist().__getitem__, order.to_pylist()) for name in _STATED)
    steps = zip(begins.tolist(), closes.tolist(), moments.to_pylist(), *stated, strict=True)
    contents = _contents(steps, earlier)
    following = pa.array(np.arange(1, len(made) + 1), mask=np.append(begins[1:], True))
    for name, column in (
        *contents.items(),
        ("valid_to", made["position"].take(following)),
        ("valid_to_time", made["stream_time"].take(following)),
    ):
        made = made.append_column(name, column)
    bench.present({_MADE: made})
    bench.run(_INSERT)
    if before:
        bench.run(_END.format(first=first))


def _contents(steps: Iterable[_Step], earlier: Mapping[int, tuple[str, int]]) -> dict[str, pa.Array]:
    """Columns of the versions that events make, memory by memory: `content`, and `created_us`, when the memory began.

    `earlier` has both of the versions that were there before the batch, by position.
    """
    texts, lengths, created = bytearray(), [0], list[int]()
    now, since = dict[str, Any](), 0
    for begins, closes, moment, patch, content in steps:
        if begins:
            before, since = earlier.get(closes, ("{}", moment))
            now = orjson.loads(before)
        if patch is not None:
            now = merge_patch(now, orjson.loads(patch))
        elif content is not None:
            now = orjson.loads(content)
        written = orjson.dumps(now)
        texts += written
        lengths.append(len(written))
        created.append(since)
    buffers = [None, pa.py_buffer(np.cumsum(lengths, dtype=np.int64)), pa.py_buffer(texts)]
    column = pa.Array.from_buffers(pa.large_string(), len(created), buffers)
    return {
        # As JSON, so that DuckDB does not parse it once more.
        "content": pa.ExtensionArray.from_storage(pa.json_(pa.large_string()), column),
        "created_us": pa.array(created, pa.int64()),
    }


def _rows(fact: type[Fact], events: pa.Table) -> pa.Table:
    """What a version is made of: columns of its event, and the patch or the content that it states, as JSON."""
    rows = events.select(_OF_EVENT)
    for name in ("owner", "memory_type"):
        rows = rows.append_column(name, pc.struct_field(events["d"], [name]))
    for name in _STATED:
        own = pc.struct_field(events["d"], [name]) if name in fact.model_fields else pa.nulls(len(rows))
        rows = rows.append_column(name, pc.cast(pc.cast(own, pa.string()), pa.binary()))  # no text is made of it
    for name, value in (("change", fact.verb()), ("status", "disabled" if fact is ProfileDisabled else "active")):
        rows = rows.append_column(name, pa.repeat(value, len(rows)))
    return rows

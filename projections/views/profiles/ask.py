"""Queries of a user's memory: its content and its version."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import orjson

from ledger.event import JsonObject
from projections.fold_kit.named_rows import named_rows
from projections.fold_kit.page import Measured, bytes_of, latest
from projections.views.times import with_times


@dataclass(frozen=True, slots=True)
class Profile:
    """One memory of one user. `content` is as written; `projections.views.profiles.content` adds the defaults."""

    memory_type: str
    content: JsonObject
    status: str
    version: int
    position: int


def profiles(cursor: duckdb.DuckDBPyConnection, org: str, owner: str, as_of: int | None = None) -> dict[str, Profile]:
    """The memories of one owner by memory type, now or as of a position."""
    source = "profiles" if as_of is None else f"profiles_at({int(as_of)})"
    rows = named_rows(
        cursor,
        f"SELECT memory_type, content, status, version, position FROM {source} WHERE org = ? AND owner = ?",
        [org, owner],
    )
    return {row["memory_type"]: Profile(**row | {"content": orjson.loads(row["content"])}) for row in rows}


_VERSIONS = Measured("profile_versions", bytes_of(("content",)), "valid_from")
_VERSION_COLUMNS = """version, change, status, content, valid_from, valid_to,
    epoch_us(valid_from_time) AS valid_from_time, epoch_us(valid_to_time) AS valid_to_time,
    trace_id, message_id, event_id"""


def versions(
    cursor: duckdb.DuckDBPyConnection, org: str, owner: str, memory_type: str, before: int | None = None
) -> tuple[list[JsonObject], int | None]:
    """Every version of one memory before a position, oldest first, its content as written: the latest that fit into an
    answer, and the position before which the others are.
    """
    earlier = "" if before is None else f"AND valid_from < {int(before)}"
    found = f"FROM profile_versions WHERE org = ? AND owner = ? AND memory_type = ? {earlier}"
    rows, following = latest(cursor, _VERSIONS, found, [org, owner, memory_type], _VERSION_COLUMNS)
    shown = [
        with_times(row | {"content": orjson.loads(row["content"])}, "valid_from_time", "valid_to_time") for row in rows
    ]
    return shown, following

"""Queries of a user's memory: its content and its version."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import orjson

from ledger.event import JsonObject
from projections.views.knowledge.ask import rfc3339


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
    rows = cursor.execute(
        f"""SELECT memory_type, content::VARCHAR, status, version, position FROM {source}
            WHERE org = ? AND owner = ?""",
        [org, owner],
    ).fetchall()
    return {row[0]: Profile(row[0], orjson.loads(row[1]), *row[2:]) for row in rows}


def versions(cursor: duckdb.DuckDBPyConnection, org: str, owner: str, memory_type: str) -> list[JsonObject]:
    """Every version of one memory, oldest first, its content as written."""
    rows = cursor.execute(
        """SELECT version, change, status, content::VARCHAR, valid_from, valid_to, epoch_us(valid_from_time),
               epoch_us(valid_to_time), trace_id, message_id, event_id
           FROM profile_versions WHERE org = ? AND owner = ? AND memory_type = ? ORDER BY valid_from""",
        [org, owner, memory_type],
    ).fetchall()
    names = ["version", "change", "status", "content", "valid_from", "valid_to", "valid_from_time", "valid_to_time"]
    names += ["trace_id", "message_id", "event_id"]
    result = []
    for row in rows:
        version = dict(zip(names, row, strict=True))
        version["content"] = orjson.loads(version["content"])
        for name in ("valid_from_time", "valid_to_time"):
            version[name] = None if version[name] is None else rfc3339(version[name])
        result.append(version)
    return result

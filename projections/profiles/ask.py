"""What is remembered of a user? The content of a memory as source 003 shapes it, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass

import duckdb
import orjson

from ledger.event import JsonObject


@dataclass(frozen=True, slots=True)
class Profile:
    """One memory of one user. `content` is as it was stated: `projections.profiles.content` fills it up."""

    memory_type: str
    content: JsonObject
    status: str
    version: int
    position: int


def profiles(cursor: duckdb.DuckDBPyConnection, org: str, owner: str) -> dict[str, Profile]:
    """The memories of one owner by memory type; none that was never created."""
    rows = cursor.execute(
        """SELECT memory_type, content::VARCHAR, status, version, position FROM profiles
           WHERE org = ? AND owner = ?""",
        [org, owner],
    ).fetchall()
    return {row[0]: Profile(row[0], orjson.loads(row[1]), *row[2:]) for row in rows}

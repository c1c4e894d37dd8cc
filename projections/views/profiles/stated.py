"""A memory without its defaults: only what somebody has set.

The versions of a memory are complete, defaults included. What was set follows from its events: of a full content, the
values that differ from the defaults, and then each patch as written, so that a default that somebody did set counts.
"""

from __future__ import annotations

import duckdb
import orjson
from pydantic import ValidationError

from kledger.contract.words import ProfileType
from ledger.event import JsonObject
from projections.fold_kit.sql_text import among
from projections.views.profiles.content import CONTENTS
from projections.views.profiles.merge_patch import merge_patch


def stated(cursor: duckdb.DuckDBPyConnection, org: str, owner: str, as_of: int) -> dict[str, JsonObject]:
    """The values set in each memory of one owner as of a position, by memory type."""
    versions = cursor.execute(
        """SELECT memory_type, valid_from FROM profile_versions p
           WHERE org = $org AND owner = $owner AND valid_from <= $as_of AND change IN ('created', 'replaced', 'patched')
               AND valid_from >= (
                   SELECT coalesce(max(valid_from), 0) FROM profile_versions b
                   WHERE b.org = $org AND b.owner = $owner AND b.memory_type = p.memory_type
                       AND b.valid_from <= $as_of AND b.change IN ('created', 'replaced')
               )
           ORDER BY valid_from""",
        {"org": org, "owner": owner, "as_of": as_of},
    ).fetchall()
    memory_of: dict[int, ProfileType] = {position: memory_type for memory_type, position in versions}
    events = cursor.execute(
        f"SELECT position, data::VARCHAR FROM other_events WHERE position IN ({among(memory_of)}) ORDER BY position"
    ).fetchall()
    contents: dict[ProfileType, JsonObject] = {}
    for position, data in events:
        memory_type, written = memory_of[position], orjson.loads(data)
        if "patch" in written:
            contents[memory_type] = merge_patch(contents.get(memory_type, {}), written["patch"])
        else:
            contents[memory_type] = _without_defaults(memory_type, written["content"])
    return {memory_type: _in_order(memory_type, content) for memory_type, content in contents.items()}


def _without_defaults(memory_type: ProfileType, content: JsonObject) -> JsonObject:
    try:
        memory = CONTENTS[memory_type].model_validate_json(orjson.dumps(content))
    except ValidationError:  # a foreign writer used another schema: all of it was set
        return content
    return memory.model_dump(mode="json", exclude_defaults=True)


def _in_order(memory_type: ProfileType, content: JsonObject) -> JsonObject:
    """The content with its fields in the order of the schema."""
    try:
        memory = CONTENTS[memory_type].model_validate_json(orjson.dumps(content))
    except ValidationError:
        return content
    return memory.model_dump(mode="json", exclude_unset=True)

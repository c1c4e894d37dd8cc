"""A memory without its defaults: only what somebody has set.

The versions of a memory are complete, defaults included. What was set follows from its events: of a full content, the
values that differ from the defaults, and then each patch as written, so that a default that somebody did set counts.
"""

from __future__ import annotations

import duckdb
import orjson
from pydantic import ValidationError

from ledger.event import JsonObject
from ledger.events.profile import MemoryType
from projections.fold_kit.sql_text import among
from projections.views.profiles.content import CONTENTS
from projections.views.profiles.merge_patch import merge_patch


def stated(cursor: duckdb.DuckDBPyConnection, org: str, owner: str, as_of: int) -> dict[str, JsonObject]:
    """What was said in each memory of one owner up to a position, by memory type."""
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
    memory_of: dict[int, MemoryType] = {position: memory_type for memory_type, position in versions}
    events = cursor.execute(
        f"SELECT position, data::VARCHAR FROM events WHERE position IN ({among(memory_of)}) ORDER BY position"
    ).fetchall()
    found: dict[str, JsonObject] = {}
    for position, data in events:
        memory_type, said = memory_of[position], orjson.loads(data)
        if "patch" in said:
            found[memory_type] = merge_patch(found.get(memory_type, {}), said["patch"])
        else:
            found[memory_type] = _without_defaults(memory_type, said["content"])
    return {memory_type: _in_order(memory_type, said) for memory_type, said in found.items()}  # type: ignore[arg-type]


def _without_defaults(memory_type: MemoryType, content: JsonObject) -> JsonObject:
    try:
        memory = CONTENTS[memory_type].model_validate_json(orjson.dumps(content))
    except ValidationError:  # a foreign writer stated another shape, and all of it
        return content
    return memory.model_dump(mode="json", exclude_defaults=True)


def _in_order(memory_type: MemoryType, said: JsonObject) -> JsonObject:
    """The same with its fields in the order of source 003."""
    try:
        memory = CONTENTS[memory_type].model_validate_json(orjson.dumps(said))
    except ValidationError:
        return said
    return memory.model_dump(mode="json", exclude_unset=True)

"""The memory of an item: its columns in a row, as the document that requests and answers have."""

from __future__ import annotations

from typing import Any

import orjson

from kledger.contract.memory import DETAILS, Memory
from ledger.event import JsonObject
from projections.views.knowledge.tags import hold_words

MEMORY_COLUMNS = ("layer", "kind", "importance", "lifetime", "memory")
"""The columns of a version that say what makes it a memory; all are null where it is none."""


def stated_memory(row: JsonObject) -> JsonObject | None:
    """Every field of the memory of a row with MEMORY_COLUMNS; None where the item is no memory."""
    if row["layer"] is None:
        return None
    details: JsonObject = orjson.loads(row["memory"])
    return {name: row[name] for name in MEMORY_COLUMNS if name != "memory"} | {name: details[name] for name in DETAILS}


def shown_memory(row: JsonObject) -> JsonObject:
    """`memory` with the fields that are filled in, where the item is a memory; a memory that was promoted has no
    lifetime any more, and one that has `tags` has them there alone."""
    stated = stated_memory(row)
    if stated is None:
        return {}
    if stated["layer"] != "short":
        stated["lifetime"] = None
    if not hold_words(orjson.loads(row["tags"] or "{}")):
        stated["tags"] = []
    return {"memory": {name: value for name, value in stated.items() if value is not None and value != []}}


def is_short(item: JsonObject) -> bool:
    """Whether an item, as an answer has it, is a short memory."""
    return bool(item.get("memory", {}).get("layer") == "short")


def without_memory_columns(row: JsonObject) -> JsonObject:
    """The row without MEMORY_COLUMNS."""
    return {name: value for name, value in row.items() if name not in MEMORY_COLUMNS}


def memory_of_fact(memory: Memory | None) -> dict[str, Any] | None:
    """What a save states, comparable with `stated_memory`."""
    return None if memory is None else memory.model_dump()

"""Entries of a tree file: one item as JSON, and the payload that an entry is imported as.

An entry is an item as the ledger returns it. One that the ledger exported has a `version` and is complete; in one that
was written by hand, missing fields follow from its place in the tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from producers.tree.placing import defaults_at

STATED = ("types", "task", "content", "tags", "scopes", "owner", "resource_ids", "source", "acl", "memory")
"""Fields of an item's statement: entries that agree in them are the same."""
_EVAL_FIELDS = ("score", "helpful", "harmful", "confidence")
_ANSWER_FIELDS = ("quality_score", "position", "relevance")
# Fields that only the ledger sets; the dates of an entry written by hand are kept as those of its origin.
_LEDGER_FIELDS = ("version", "status", "merged_into", *_ANSWER_FIELDS)


def entry_of(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item as an entry of a file."""
    return {name: value for name, value in item.items() if name not in _ANSWER_FIELDS and value is not None}


def payload_of(entry: Mapping[str, Any], place: PurePosixPath) -> dict[str, Any]:
    """The payload of an entry, as for `POST /api/knowledge`. Unknown fields are kept, so that the node refuses them."""
    if "version" in entry:
        payload = {name: entry[name] for name in ("id", "message_id", *STATED) if name in entry}
        counts = entry.get("eval")
        if isinstance(counts, dict):
            payload["eval"] = {name: counts[name] for name in _EVAL_FIELDS if name in counts}
        return payload
    payload = {name: value for name, value in entry.items() if name not in _LEDGER_FIELDS}
    defaults = defaults_at(place) or {}
    category = defaults.pop("category", None)
    if "type" in payload:
        defaults.pop("types", None)
    if category is not None and "types" not in entry and "type" not in entry:
        stated = entry.get("tags") or {}
        if isinstance(stated, dict):  # else the node says what tags are
            payload["tags"] = {"category": category, **stated}
    if "owner" in payload and place.parts[0] != "global":  # the owner decides who sees it, not the place
        defaults.pop("scopes", None)
    return {**defaults, **payload}


def same_statement(item: Mapping[str, Any], payload: Mapping[str, Any]) -> bool:
    """Whether an item equals a payload; fields that the payload omits are not compared."""
    return all(_plain(item.get(name)) == _plain(payload[name]) for name in STATED if name in payload)


def _plain(value: Any) -> Any:
    """A value without empty fields: a source without a name equals one whose name is null."""
    if isinstance(value, Mapping):
        return {name: each for name, each in value.items() if each not in (None, [])}
    return value

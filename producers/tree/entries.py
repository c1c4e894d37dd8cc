"""What stands in a file of the tree for one item, and which payload does an entry come to?

An entry is the item as the ledger tells it (K1). One that the ledger wrote has a `version`, and says all that is to
be said; in one that was written by hand, what it leaves out follows from its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from producers.tree.placing import defaults_at

STATED = ("types", "task", "content", "tags", "scopes", "owner", "resource_ids", "source", "acl")
"""What an item says: by these two entries are the same."""
_EVALUATED = ("score", "helpful", "harmful", "confidence")
_OF_AN_ANSWER = ("quality_score", "position", "relevance")
# What only the ledger may say of an item; the dates of an entry by hand are kept as those of where it was before.
_THE_LEDGERS = ("version", "status", "merged_into", *_OF_AN_ANSWER)


def entry_of(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item as it stands in a file."""
    return {name: value for name, value in item.items() if name not in _OF_AN_ANSWER and value is not None}


def payload_of(entry: Mapping[str, Any], place: PurePosixPath) -> dict[str, Any]:
    """The payload of an entry: what `POST /api/knowledge` takes. Unknown fields stay, so that the node refuses them."""
    if "version" in entry:
        stated = {name: entry[name] for name in ("id", "message_id", *STATED) if name in entry}
        counts = entry.get("eval")
        if isinstance(counts, dict):
            stated["eval"] = {name: counts[name] for name in _EVALUATED if name in counts}
        return stated
    stated = {name: value for name, value in entry.items() if name not in _THE_LEDGERS}
    defaults = defaults_at(place) or {}
    category = defaults.pop("category", None)
    if "type" in stated:
        defaults.pop("types", None)
    if category is not None and "types" not in entry and "type" not in entry:
        stated["tags"] = {"category": category, **(entry.get("tags") or {})}
    if "owner" in stated and place.parts[0] != "global":  # who owns it decides who sees it, not where it lies
        defaults.pop("scopes", None)
    return {**defaults, **stated}


def same(item: Mapping[str, Any], payload: Mapping[str, Any]) -> bool:
    """Whether an item of the ledger says what a payload says; what the payload leaves open is not compared."""
    return all(_plain(item.get(name)) == _plain(payload[name]) for name in STATED if name in payload)


def _plain(value: Any) -> Any:
    """A value without fields that say nothing: a source without a name is one whose name is null."""
    if isinstance(value, Mapping):
        return {name: each for name, each in value.items() if each not in (None, [])}
    return value

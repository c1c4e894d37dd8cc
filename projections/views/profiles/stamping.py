"""Stamping of a memory's entries: fills in the time of the last change, the source and the confidence where absent.

An entry is a person, a place, a routine, a project: whatever has a name and a `meta`. One that is new, or differs from
the previous one of its name, gets the current time as its `last_updated_at` when the writer gave none; an unchanged one
keeps its time. An entry without any `meta` keeps the source and the confidence of the previous one: a writer that does
not know these fields does not delete them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, get_args

from kledger.contract.words import ProfileType
from ledger.event import JsonObject
from projections.views.profiles.content import CONTENTS, filled


def _entry_lists(memory_type: ProfileType) -> tuple[str, ...]:
    """The fields that list entries with a `meta`."""
    names = []
    for name, info in CONTENTS[memory_type].model_fields.items():
        entry = next(iter(get_args(info.annotation)), None)
        if isinstance(entry, type) and "meta" in getattr(entry, "model_fields", ()):
            names.append(name)
    return tuple(names)


ENTRY_LISTS: dict[ProfileType, tuple[str, ...]] = {each: _entry_lists(each) for each in CONTENTS}


def stamped(memory_type: ProfileType, written: JsonObject, before: Mapping[str, Any], now: datetime) -> JsonObject:
    """A written content or patch, with the `meta` of each entry completed from `before` and `now`.

    `before` is the memory's previous content, complete. Whatever is not shaped like an entry stays as it is, for the
    validation that follows.
    """
    filled = dict(written)
    for name in ENTRY_LISTS[memory_type]:
        entries = written.get(name)
        if isinstance(entries, list):
            known = _by_name(before.get(name))
            filled[name] = [_stamped_entry(entry, known, now) for entry in entries]
    return filled


def says_the_same(memory_type: ProfileType, written: JsonObject, kept: Mapping[str, Any]) -> bool:
    """Whether a stored event has this `content` or `patch`, apart from the `meta` of entries, which was completed."""
    complete = {name: filled(memory_type, value) if name == "content" else value for name, value in written.items()}
    return all(_without_meta(value) == _without_meta(kept.get(name)) for name, value in complete.items())


def _without_meta(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_meta(part) for name, part in value.items() if name != "meta"}
    return [_without_meta(part) for part in value] if isinstance(value, list) else value


def _by_name(entries: Any) -> dict[str, list[JsonObject]]:
    """The entries of a list by their name, in their order; a name may occur twice."""
    by_name: dict[str, list[JsonObject]] = {}
    for entry in entries if isinstance(entries, list) else ():
        if isinstance(entry, dict):
            by_name.setdefault(str(entry.get("name")), []).append(entry)
    return by_name


def _stamped_entry(entry: Any, known: dict[str, list[JsonObject]], now: datetime) -> Any:
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        return entry
    same_name = known.get(entry["name"]) or []
    earlier = same_name.pop(0) if same_name else None
    had = (earlier or {}).get("meta") or {}
    meta = entry.get("meta", {name: had[name] for name in ("source", "confidence") if name in had})
    if not isinstance(meta, dict) or meta.get("last_updated_at") is not None:
        return entry
    unchanged = earlier is not None and _compared(entry, meta) == _compared(earlier, had)
    moment = had.get("last_updated_at") if unchanged else None
    return {**entry, "meta": {**meta, "last_updated_at": moment or now.isoformat()}}


def _compared(entry: JsonObject, meta: JsonObject) -> JsonObject:
    """The fields by which entries are compared: all but the time, without empty ones, so that null equals absence."""
    fields = {name: value for name, value in entry.items() if name != "meta" and value not in (None, [])}
    return {**fields, "source": meta.get("source"), "confidence": meta.get("confidence", 0.5)}

"""The most that one answer holds of what is kept: a page that would have more ends early, and says where to go on.

Counts of entries bound no memory, as one may have a megabyte. So each answer that grows with what is kept is cut here,
whatever it lists, and is no larger than this and the entry that did not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import orjson

from ledger.event import JsonObject

MOST_BYTES = 8 * 1024 * 1024
"""Of the entries of one answer, as JSON."""
LEAST = 2
"""Entries of an answer that are not cut: a page that begins with the last entry of the one before has a new one."""

T = TypeVar("T")


_LONG = ("task", "content", "tags", "source", "resource_ids", "memory")
"""Fields of an item that may be long."""
BEGINNING, SMALL, MANY = 1_000, 4_000, 10
"""Characters of a text that is shortened; bytes of a value that is left as it is; so many as much in one object."""


def size_of(entry: Any) -> int:
    """The bytes of an entry, as JSON; what JSON has no form for counts as its text."""
    return len(orjson.dumps(entry, default=str))


def fitting(entries: Sequence[T], taken: int = 0) -> Sequence[T]:
    """The first of these entries that fit into an answer, LEAST in any case; `taken` bytes of it are used already."""
    left = MOST_BYTES - taken
    for number, entry in enumerate(entries):
        left -= size_of(entry)
        if left < 0 and number >= LEAST:
            return entries[:number]
    return entries


def last_fitting(entries: Sequence[T], taken: int = 0) -> Sequence[T]:
    """The last of these entries that fit into an answer, LEAST in any case."""
    return fitting(entries[::-1], taken)[::-1]


def with_room(entries: Sequence[JsonObject], taken: int = 0) -> list[JsonObject]:
    """These entries, which are ranked and none of which may be left out; of those that do not fit into an answer the
    long fields are `shortened`, and named there.
    """
    left = MOST_BYTES - taken
    shown: list[JsonObject] = []
    for entry in entries:
        size = size_of(entry)
        if size > left and shown:
            entry = _shorter(entry)
            size = size_of(entry)
        left -= size
        shown.append(entry)
    return shown


def _shorter(entry: JsonObject) -> JsonObject:
    """An entry with the beginnings of its long texts, and without what else of it is long."""
    long = [name for name in _LONG if name in entry and size_of(entry[name]) > SMALL]
    return {**entry, **{name: _beginning(entry[name]) for name in long}, "shortened": long} if long else entry


def _beginning(value: Any) -> Any:
    if isinstance(value, str):
        return value[:BEGINNING]
    small = {name: each for name, each in value.items() if size_of(each) <= SMALL} if isinstance(value, dict) else {}
    return [] if isinstance(value, list) else small if size_of(small) <= MANY * SMALL else {}

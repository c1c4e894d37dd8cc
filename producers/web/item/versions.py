"""Versions of an item, each with what it changed of the one before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import orjson

from kledger.answers.knowledge import ItemVersion
from kledger.client.clients import AsyncLedgerClient
from producers.web.differences import MOST, Part, beside, differences

PAGE = 10
"""Versions on one page."""
_COMPARED = (
    *("task", "types", "tags", "scopes", "owner", "acl", "resource_ids", "source", "score", "status", "memory"),
    *("supersedes", "superseded_by"),
)


@dataclass(frozen=True, slots=True)
class Changed:
    """One field that a version changed."""

    field: str
    parts: list[Part]


@dataclass(frozen=True, slots=True)
class Shown:
    """One version; `content` is empty where it says what the one before said, `changed` are its other fields."""

    version: ItemVersion
    first: bool
    content: list[Part]
    changed: list[Changed]


@dataclass(frozen=True, slots=True)
class Versions:
    """A page of versions, the latest first; `earlier` is the position before which the next page ends."""

    shown: list[Shown]
    earlier: int | None


async def versions_of(ledger: AsyncLedgerClient, item_id: str, before: int | None) -> Versions:
    """The latest versions before a position, and what each changed."""
    life = await ledger.history(item_id, limit=PAGE + 1, before=before, shorten=MOST + 1)
    versions = life["versions"]
    more = len(versions) > PAGE
    shown = await beside(lambda: _compared(versions, more))
    return Versions(shown, versions[1]["valid_from"] if more else None)


def _compared(versions: Sequence[ItemVersion], more: bool) -> list[Shown]:
    first = [] if more or not versions else [Shown(versions[0], True, [], [])]
    return [Shown(now, False, _content(was, now), _changed(was, now)) for was, now in pairwise(versions)][::-1] + first


def _content(was: ItemVersion, now: ItemVersion) -> list[Part]:
    return differences(was["content"], now["content"]) if was["content"] != now["content"] else []


def _changed(was: ItemVersion, now: ItemVersion) -> list[Changed]:
    return [
        Changed(name, differences(old, new))
        for name in _COMPARED
        if (old := as_text(was.get(name))) != (new := as_text(now.get(name)))
    ]


def as_text(value: object) -> str:
    """A field as text: a list with commas, an object as JSON; nothing where there is none."""
    if value is None or value in ([], {}):
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(value)
    return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode()

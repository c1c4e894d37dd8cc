"""The form that revises an item: what it is filled in with, what somebody wrote, and what of that is new."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import orjson

from kledger.answers.knowledge import WholeItem
from kledger.contract.errors import InvalidPayload
from kledger.contract.json_text import loads
from kledger.contract.lists import join_words, split_words
from producers.web.item.versions import as_text
from producers.web.visit import Visit

TEXTS = ("task", "content", "types", "tags", "scopes", "owner", "resource_ids", "source")
_LISTS = ("types", "scopes", "resource_ids")
_OBJECTS = ("tags", "source")


@dataclass(frozen=True, slots=True)
class Written:
    """The fields of a form as texts, the version that they were written on, and why."""

    texts: Mapping[str, str]
    version: int
    reason: str


def filled(item: WholeItem) -> Written:
    """The form of an item as it is now."""
    source = {name: value for name, value in item["source"].items() if value not in (None, [])}
    stated: Mapping[str, object] = {**item, "source": source}
    return Written({name: _text(name, stated[name]) for name in TEXTS}, item["version"], "")


def _text(name: str, value: object) -> str:
    if name in _LISTS:
        return ", ".join(join_words([each]) for each in cast("list[str]", value))
    return as_text(value)


def written(visit: Visit) -> Written:
    """What somebody sent. Raises InvalidPayload."""
    version = visit.said("expected_version")
    if not version.isascii() or not version.isdecimal() or len(version) > 16:
        raise InvalidPayload("the form does not say which version it was written on: open it again", errors=[])
    texts = {name: _lines(visit.form[name][0]) for name in TEXTS if visit.form.get(name)}
    return Written(texts, int(version), _lines(visit.said("reason")))


def stated_anew(form: Written, item: WholeItem) -> dict[str, Any]:
    """The fields that somebody wrote otherwise than the item has them, as a revision takes them.

    Raises InvalidPayload for a field that is no JSON.
    """
    now = filled(item).texts
    changed = {name: text for name, text in form.texts.items() if text != _lines(now[name])}
    return {name: _value(name, text) for name, text in changed.items()}


def _value(name: str, text: str) -> object:
    if name in _LISTS:
        return split_words(text.replace("\n", ","))
    if name in _OBJECTS:
        try:
            value = loads(text or "{}")
        except orjson.JSONDecodeError as error:
            raise InvalidPayload(f"{name} is no JSON that can be read: {error}", errors=[{"field": name}]) from error
        if not isinstance(value, dict):
            raise InvalidPayload(f"{name} is a JSON object, such as {{}}", errors=[{"field": name}])
        return cast("dict[str, object]", value)
    return text if name == "content" else text.strip()


def _lines(text: str) -> str:
    """A text as a browser would send it back, with plain line breaks."""
    return text.replace("\r\n", "\n").replace("\r", "\n")

"""JSON from outside, read without another number in the place of one that no view can hold, and each key once.

The reader below takes a whole number beyond 64 bits for the nearest float, so that a reference of thirty digits would
come back as another one; and of a key that an object has twice, the last value. Every interface that takes documents
reads them here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, ClassVar

import orjson

MOST_POSITION = 2**63 - 1
"""A position or version is a signed 64-bit number in every view: an event with a larger one is refused."""
WIDE = "holds an integer beyond 64 bits: write it as text"
TWICE = "is stated twice: state it once"
_AS_ZERO = bytes(ord("0") if chr(code).isdigit() else ord(" ") for code in range(128)) + b" " * 128
_LONG = b"0" * 19  # digits; 2**63 has so many
_LONGEST_PLACE = 200  # characters


class Unfit(orjson.JSONDecodeError):
    """A document says what cannot be kept as it is said; `place` is the path of the first such part, as `tags.n`."""

    reason: ClassVar[str]

    def __init__(self, place: str) -> None:
        super().__init__(f"{place or 'it'} {self.reason}", "", 0)
        self.place = place

    def __str__(self) -> str:
        return self.msg


class WideInteger(Unfit):
    """A document holds a whole number beyond 64 bits."""

    reason = WIDE


class RepeatedKey(Unfit):
    """An object of a document has a key twice."""

    reason = TWICE


def loads(text: bytes | str) -> Any:
    """The document in a JSON text. Raises orjson.JSONDecodeError, of which Unfit is one."""
    document = orjson.loads(text)
    raw = text.encode() if isinstance(text, str) else text
    written = _written(document)
    if written == raw:  # which has each key once, and would spell a wide number as the float that was read
        return document
    # Looked at in some microseconds a kilobyte; a pattern takes thirty. Digits within a text come here as well.
    if _LONG in raw.translate(_AS_ZERO) and (place := _wide_in(raw)) is not None:
        raise WideInteger(place[:_LONGEST_PLACE])
    if _may_repeat(raw, written) and (place := _repeated_in(raw)) is not None:
        raise RepeatedKey(place[:_LONGEST_PLACE])
    return document


def repeated_key(raw: bytes, document: object) -> str | None:
    """The place of the first key that stands twice in an object of a JSON text, which was read as `document`."""
    written = _written(document)
    if written == raw or not _may_repeat(raw, written):
        return None
    place = _repeated_in(raw)
    return None if place is None else place[:_LONGEST_PLACE]


def is_wide(number: int) -> bool:
    """Whether a whole number does not fit into 64 bits with a sign, as the views keep it."""
    return not -MOST_POSITION - 1 <= number <= MOST_POSITION


def _wide_in(raw: bytes) -> str | None:
    """The place of the first whole number beyond 64 bits. Raises orjson.JSONDecodeError for one that is nested deep."""
    try:
        stack = [("", json.loads(raw))]
    except RecursionError:
        raise orjson.JSONDecodeError("it is nested too deep", "", 0) from None
    while stack:
        place, value = stack.pop()
        if isinstance(value, int) and is_wide(value):
            return place
        stack += [(_within(place, name), part) for name, part in reversed([*_parts(value)])]
    return None


def _written(document: object) -> bytes:
    """A document as JSON; nothing for one that is nested deeper than is written, or has half a character."""
    try:
        return orjson.dumps(document)
    except orjson.JSONEncodeError:
        return b""


def _may_repeat(raw: bytes, written: bytes) -> bool:
    """Whether a key may stand twice in a text that was read as what is `written`.

    Each key and each value is written once, with its colons. So a text that has as many has no key twice; a colon that
    is spelt as an escape is looked at.
    """
    return raw.count(b":") != written.count(b":") or (b"\\" in raw and b"\\u003" in raw and b"\\u003a" in raw.lower())


class _Repeating(dict[str, Any]):
    """An object of a text that has this key twice."""

    key = ""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeating, seen = _Repeating(found), set[str]()
    for name, _ in pairs:
        if name in seen:
            repeating.key = name
            break
        seen.add(name)
    return repeating


def _repeated_in(raw: bytes) -> str | None:
    """The place of the first key that stands twice in its object; None as well where it is nested too deep to tell, and
    nothing is kept of such a text."""
    try:
        stack = [("", json.loads(raw, object_pairs_hook=_once))]
    except RecursionError:
        return None
    while stack:
        place, value = stack.pop()
        if isinstance(value, _Repeating):
            return _within(place, value.key)
        stack += [(_within(place, name), part) for name, part in reversed([*_parts(value)])]
    return None


def _within(place: str, name: object) -> str:
    return f"{place}.{name}".lstrip(".")


def _parts(value: object) -> Iterable[tuple[object, object]]:
    return value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()

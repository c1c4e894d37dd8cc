"""JSON from outside, read without another number in the place of one that no view can hold.

The reader below takes a whole number beyond 64 bits for the nearest float, so that a reference of thirty digits would
come back as another one. Every interface that takes documents reads them here.
"""

from __future__ import annotations

import json
from typing import Any

import orjson

MOST_POSITION = 2**63 - 1
"""A position or version is a signed 64-bit number in every view: an event with a larger one is refused."""
WIDE = "holds an integer beyond 64 bits: write it as text"
_AS_ZERO = bytes(ord("0") if chr(code).isdigit() else ord(" ") for code in range(128)) + b" " * 128
_LONG = b"0" * 19  # digits; 2**63 has so many
_LONGEST_PLACE = 200  # characters


class WideInteger(orjson.JSONDecodeError):
    """A document holds a whole number beyond 64 bits; `place` is the path of the first, such as `tags.n`."""

    def __init__(self, place: str) -> None:
        super().__init__(f"{place or 'it'} {WIDE}", "", 0)
        self.place = place

    def __str__(self) -> str:
        return self.msg


def loads(text: bytes | str) -> Any:
    """The document in a JSON text. Raises orjson.JSONDecodeError, of which WideInteger is one."""
    document = orjson.loads(text)
    raw = text.encode() if isinstance(text, str) else text
    # Looked at in some microseconds a kilobyte; a pattern takes thirty. Digits within a text come here as well.
    if _LONG in raw.translate(_AS_ZERO) and (place := _wide_in(raw)) is not None:
        raise WideInteger(place[:_LONGEST_PLACE])
    return document


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
        parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        stack += [(f"{place}.{name}".lstrip("."), part) for name, part in reversed([*parts])]
    return None

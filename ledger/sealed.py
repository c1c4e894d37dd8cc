"""What does a sealed value look like in an event, and what is it when its key is destroyed?

A sealed string is `sealed:v1:<key name>:<base64 of nonce, ciphertext and tag>`; an object is sealed as
`{"$sealed": "sealed:v1:…"}`, so that schemas stay as they are. The cipher is AES-256-GCM, bound to the event's id
and the value's place in it: no value can be moved elsewhere. What is sealed is the value's JSON; a value that
belongs to several subjects is sealed for one after the other, and is gone as soon as one of them is.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any

import orjson
from cryptography.exceptions import InvalidTag
from pydantic_core import to_json

from ledger.errors import KeyMissing, SealBroken
from ledger.vault import DataKey, Held, Tombstone

MARK = "sealed:v1:"
HINT = b'"sealed:v1:'
"""A body without these bytes holds nothing sealed."""
OBJECT = "$sealed"
ERASED = "[erased]"
"""What is read in the place of a text whose key is destroyed; in the place of an object: `{}`."""

Lookup = Callable[[str], Held | None]


def seal(value: Any, keys: Sequence[DataKey], event_id: str, place: str) -> Any:
    """The value sealed for every one of `keys`: a string for a string, an object for anything else.

    `place` is the JSON pointer of the value in the event, `/data/content`.
    """
    about = f"{event_id}\n{place}".encode()
    inner: bytes = to_json(value)
    for key in keys:
        inner = (MARK + key.name + ":" + base64.b64encode(key.encrypt(inner, about)).decode("ascii")).encode()
    text = inner.decode()
    return text if isinstance(value, str) else {OBJECT: text}


def names_in(sealed: str) -> str:
    """The name of the (outermost) key. Raises SealBroken when this is not a sealed string."""
    name, _, told = sealed.removeprefix(MARK).rpartition(":")
    if not sealed.startswith(MARK) or not name or not told:
        raise SealBroken(f"{sealed[:60]!r} begins like a sealed value and is none")
    return name


def opened(sealed: str, look: Lookup, event_id: str, place: str) -> bytes | None:
    """The JSON of a sealed value; None when a key that it needs is destroyed.

    Raises KeyMissing (the vault knows no such key), SealBroken (it does not verify: changed, or moved).
    """
    about = f"{event_id}\n{place}".encode()
    text = sealed
    while True:
        name = names_in(text)
        key = look(name)
        if isinstance(key, Tombstone):
            return None
        if key is None:
            raise KeyMissing(f"the vault has no key {name!r}: is it the vault of this ledger?", key=name)
        try:
            inner = key.decrypt(base64.b64decode(text[len(MARK) + len(name) + 1 :], validate=True), about)
        except (InvalidTag, ValueError, binascii.Error) as error:
            raise SealBroken(f"what is sealed at {place} does not verify: it was changed, or moved") from error
        if not inner.startswith(MARK.encode()):
            return inner
        text = inner.decode()


def is_sealed_object(value: Any) -> bool:
    """Whether an object stands for a sealed one."""
    return (
        isinstance(value, dict)
        and len(value) == 1
        and isinstance(value.get(OBJECT), str)
        and value[OBJECT].startswith(MARK)
    )


def open_all(data: Any, place: str, open_one: Callable[[str, str], orjson.Fragment | None]) -> Any:
    """A copy of a document with every sealed value in it replaced; `open_one(sealed, place)` gives None to keep it."""
    if isinstance(data, str):
        if data.startswith(MARK):
            found = open_one(data, place)
            return data if found is None else found
        return data
    if isinstance(data, dict):
        if is_sealed_object(data):
            found = open_one(data[OBJECT], place)
            return data if found is None else found
        return {name: open_all(value, f"{place}/{name}", open_one) for name, value in data.items()}
    if isinstance(data, list):
        return [open_all(value, f"{place}/{number}", open_one) for number, value in enumerate(data)]
    return data

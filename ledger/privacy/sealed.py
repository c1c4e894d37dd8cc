"""Sealed values: encrypted text in events, which is unreadable for good once its key is destroyed (crypto-shredding).

A sealed string is `sealed:v1:<key name>:<base64 of nonce, ciphertext and tag>`; an object is sealed as
`{"$sealed": "sealed:v1:…"}`, so schemas do not change. The cipher is AES-256-GCM, bound to the event's id, its actor
and the value's place in it, so no value can be moved elsewhere. The plaintext is the value's JSON. A value that belongs
to several subjects is sealed for one after the other, and is erased as soon as one of their keys is.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson
from cryptography.exceptions import InvalidTag

from kledger.contract.entities import ENTITY_MAX_LENGTH, is_entity
from kledger.contract.errors import InvalidPayload, KeyMissing, SealBroken
from kledger.contract.seal_mark import MARK
from ledger.privacy.vault import DataKey, Held, Tombstone
from ledger.wire.plain_data import written
from ledger.wire.seal_mac import ATTRIBUTE

HINT = b'"sealed:v1:'
"""A body that the ledger wrote has no sealed value without these bytes."""
_HAS_MAC = f'"{ATTRIBUTE}"'.encode()
_ESCAPED = b"\\u00"
_ESCAPE = b"\\"  # one byte is found many times as fast, and most bodies have none
OBJECT = "$sealed"
ERASED = "[erased]"
"""Shown instead of a text whose key is destroyed; instead of an object: `{}`.

It is for display only, since a person may write the same text. The view records which values were erased
(projections/fold_kit/erased.py).
"""

USER, RESOURCE = "user:", "resource:"
"""Prefixes of key names: of a person's text, of a resource's secure body."""

MOST_DEPTH = 64
"""The deepest nesting of a document with sealed values."""

Lookup = Callable[[str], Held | None]
Vouch = Callable[[Tombstone, str, str], bool]
"""Whether the text at a place was really sealed with the destroyed key; called in the order of the document, and only
for the outermost seal of a text."""


def _accept_all(_gone: Tombstone, _place: str, _sealed: str) -> bool:
    """Every seal counts."""
    return True


def may_be_sealed(body: bytes) -> bool:
    """Whether a body may hold a sealed value or a seal MAC, even one that a foreign writer wrote with escapes."""
    return HINT in body or _HAS_MAC in body or (_ESCAPE in body and _ESCAPED in body)


def seal(value: Any, keys: Sequence[DataKey], event_id: str, place: str, by: str = "") -> Any:
    """The value sealed with each of `keys` in turn: a string for a string, an object for anything else.

    `place` is the JSON pointer of the value in the event, such as `/data/content`; `by` is tenant and actor
    (ledger/wire/subjects.py:stated_by).
    """
    return sealed_about(value, keys, bound_to(event_id, place, by))


def sealed_about(value: Any, keys: Sequence[DataKey], about: bytes) -> Any:
    """The same with what it is bound to, as `bound_to` makes it."""
    is_text = isinstance(value, str)
    inner = written(value)
    for key in keys:
        inner = key.seal(inner, about)
    text = inner.decode()
    return text if is_text else {OBJECT: text}


def name_in(sealed: str) -> str:
    """The name of the (outermost) key. Raises SealBroken when this is not a sealed string."""
    name, _, cipher = sealed.removeprefix(MARK).rpartition(":")
    if not sealed.startswith(MARK) or not _is_key_name(name) or not cipher:
        # The error does not quote it: a writer who typed the mark by hand may have put a secret after it.
        raise SealBroken(f"a text of {len(sealed)} characters begins like a sealed value and is none")
    return name


def _is_key_name(name: str) -> bool:
    """Whether this is a legal key name, of a person or of a resource."""
    if name.startswith(RESOURCE):
        return len(RESOURCE) < len(name) <= len(RESOURCE) + ENTITY_MAX_LENGTH and name.isprintable()
    return name.startswith(USER) and is_entity(name)


def sealed_values(data: Any) -> Iterator[str]:
    """Every text of a document with the mark of a sealed value, wherever `open_document` would open it.

    Raises InvalidPayload where the document is nested too deeply.
    """
    stack: list[tuple[Any, int]] = [(data, 1)]
    while stack:
        part, depth = stack.pop()
        if isinstance(part, str):
            if part.startswith(MARK):
                yield part
        elif isinstance(part, dict | list):
            if depth > MOST_DEPTH:
                raise InvalidPayload(f"it is nested more than {MOST_DEPTH} deep, and holds sealed values", errors=[])
            stack += [(each, depth + 1) for each in (part.values() if isinstance(part, dict) else part)]


def bound_to(event_id: str, place: str, by: str) -> bytes:
    """The associated data of a seal. Event ids are unique only for one actor, so actor and tenant are part of it.

    Without `by` it is the associated data of earlier versions, so that their events can still be opened.
    """
    return (f"{event_id}\n{place}\n{by}" if by else f"{event_id}\n{place}").encode()


def opened(
    sealed: str, look: Lookup, event_id: str, place: str, by: str = "", vouch: Vouch = _accept_all
) -> bytes | None:
    """The JSON of a sealed value; None when a key that it needs is destroyed and `vouch` confirms that it sealed it.

    A value sealed for a resource stays sealed: it is opened only for an authorized reader
    (ledger/privacy/secure_body.py). Raises KeyMissing (the vault has no such key), SealBroken (it does not verify:
    changed, moved, or forged).
    """
    text = sealed
    while True:
        name = name_in(text)
        if name.startswith(RESOURCE):
            return orjson.dumps(text)
        key = look(name)
        if isinstance(key, Tombstone):
            if text == sealed and not vouch(key, place, sealed):
                raise not_verified(place)
            return None
        if key is None:
            raise KeyMissing(f"the vault has no key {name!r}: is it the vault of this ledger?", key=name, place=place)
        try:
            inner = _decrypted(
                key, base64.b64decode(text[len(MARK) + len(name) + 1 :], validate=True), event_id, place, by
            )
        except (InvalidTag, ValueError) as error:
            raise not_verified(place) from error
        if not inner.startswith(MARK.encode()):
            return inner
        text = inner.decode()


def not_verified(place: str = "") -> SealBroken:
    """The error for a seal that does not decrypt at this place; without a place, for one with a wrong event MAC."""
    if not place:
        return SealBroken("what is sealed in it does not verify: it was changed, or moved")
    return SealBroken(f"what is sealed at {place} does not verify: it was changed, or moved")


def _decrypted(key: DataKey, cipher: bytes, event_id: str, place: str, by: str) -> bytes:
    """Decrypt with the current associated data, else with that of earlier versions. Raises InvalidTag, ValueError."""
    if by:
        with contextlib.suppress(InvalidTag):
            return key.decrypt(cipher, bound_to(event_id, place, by))
    return key.decrypt(cipher, bound_to(event_id, place, ""))


def open_document(
    data: Any,
    look: Lookup,
    event_id: str,
    place: str = "/data",
    by: str = "",
    vouch: Vouch = _accept_all,
    erased: Callable[[str], None] = lambda _place: None,
) -> Any:
    """A copy of a document with every sealed value opened or replaced by its fallback; to be serialized by orjson.

    `erased` is called with the place of each fallback. Raises KeyMissing, SealBroken.
    """

    def read(sealed: str, fallback: Any) -> Any:
        value = opened(sealed, look, event_id, place, by, vouch)
        if value is None:
            erased(place)
            return fallback
        return orjson.Fragment(value)

    if isinstance(data, str):
        if not data.startswith(MARK):
            return data
        return read(data, ERASED)
    if isinstance(data, dict):
        if _is_sealed(data):
            return read(data[OBJECT], {})
        return {
            name: open_document(value, look, event_id, f"{place}/{name}", by, vouch, erased)
            for name, value in data.items()
        }
    if isinstance(data, list):
        return [
            open_document(value, look, event_id, f"{place}/{number}", by, vouch, erased)
            for number, value in enumerate(data)
        ]
    return data


def says_mark(data: Any) -> bool:
    """Whether a text in this document begins with the mark of a sealed value."""
    if isinstance(data, str):
        return data.startswith(MARK)
    if isinstance(data, dict):
        return any(says_mark(value) for value in data.values())
    return isinstance(data, list) and any(says_mark(value) for value in data)


def _is_sealed(value: dict[str, Any]) -> bool:
    text = value.get(OBJECT) if len(value) == 1 else None
    return isinstance(text, str) and text.startswith(MARK)

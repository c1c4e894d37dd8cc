"""What does a sealed value look like in an event, and what is it when its key is destroyed?

A sealed string is `sealed:v1:<key name>:<base64 of nonce, ciphertext and tag>`; an object is sealed as
`{"$sealed": "sealed:v1:…"}`, so that schemas stay as they are. The cipher is AES-256-GCM, bound to the event's id,
to who states it and to the value's place in it: no value can be moved elsewhere. What is sealed is the value's JSON;
a value that belongs to several subjects is sealed for one after the other, and is gone as soon as one of them is.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson
from cryptography.exceptions import InvalidTag
from pydantic_core import to_json

from kledger.contract.entities import ENTITY_MAX_LENGTH, is_entity
from kledger.contract.errors import InvalidPayload, KeyMissing, SealBroken
from ledger.privacy.seal_mark import MARK
from ledger.privacy.seal_witness import ATTRIBUTE
from ledger.privacy.vault import DataKey, Held, Tombstone

HINT = b'"sealed:v1:'
"""A body of ours without these bytes holds nothing sealed."""
_BORNE_OUT = f'"{ATTRIBUTE}"'.encode()
_ESCAPED = b"\\u00"
OBJECT = "$sealed"
ERASED = "[erased]"
"""What is read in the place of a text whose key is destroyed; in the place of an object: `{}`.

It is for reading alone: a text that says so may be somebody's own words. What was erased, the view knows
(projections/fold_kit/erased.py).
"""

USER, RESOURCE = "user:", "resource:"
"""How the names of keys begin: a person's own text, the secure body of a resource."""

MOST_DEPTH = 64
"""How deep a document may be nested that holds sealed values."""

Lookup = Callable[[str], Held | None]
Vouch = Callable[[Tombstone, str, str], bool]
"""Whether the text at a place was sealed with the key that is destroyed; asked in the order of the document. What lies
within another person's seal is vouched for by that."""


def _as_stated(_gone: Tombstone, _place: str, _sealed: str) -> bool:
    """Every seal counts."""
    return True


def may_be_sealed(body: bytes) -> bool:
    """Whether a body may hold something sealed, or what bears that out, also where a foreign writer used escapes."""
    return HINT in body or _BORNE_OUT in body or _ESCAPED in body


def seal(value: Any, keys: Sequence[DataKey], event_id: str, place: str, by: str = "") -> Any:
    """The value sealed for every one of `keys`: a string for a string, an object for anything else.

    `place` is the JSON pointer of the value in the event, `/data/content`; `by` who states the event
    (ledger/wire/subjects.py:stated_by).
    """
    about = bound_to(event_id, place, by)
    inner: bytes = to_json(value)
    for key in keys:
        inner = (MARK + key.name + ":" + base64.b64encode(key.encrypt(inner, about)).decode("ascii")).encode()
    text = inner.decode()
    return text if isinstance(value, str) else {OBJECT: text}


def name_in(sealed: str) -> str:
    """The name of the (outermost) key. Raises SealBroken when this is not a sealed string."""
    name, _, told = sealed.removeprefix(MARK).rpartition(":")
    if not sealed.startswith(MARK) or not _is_key_name(name) or not told:
        # Not a letter of it is told: whoever wrote the mark by hand may have put a secret behind it.
        raise SealBroken(f"a text of {len(sealed)} characters begins like a sealed value and is none")
    return name


def _is_key_name(name: str) -> bool:
    """Whether there may be a key of this name: of a person, or of a resource."""
    if name.startswith(RESOURCE):
        return len(RESOURCE) < len(name) <= len(RESOURCE) + ENTITY_MAX_LENGTH and name.isprintable()
    return name.startswith(USER) and is_entity(name)


def sealed_values(data: Any) -> Iterator[str]:
    """Every text of a document that begins as only a sealed one may, where `open_document` looks for it.

    Raises InvalidPayload where the document is nested deeper than that goes.
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
    """What a seal is bound to. An event id is its actor's alone: so the actor belongs to it, and the tenant.

    Without `by` it is what earlier versions bound a seal to, and what is in the log from then still opens.
    """
    return (f"{event_id}\n{place}\n{by}" if by else f"{event_id}\n{place}").encode()


def opened(
    sealed: str, look: Lookup, event_id: str, place: str, by: str = "", vouch: Vouch = _as_stated
) -> bytes | None:
    """The JSON of a sealed value; None when a key that it needs is destroyed and `vouch` says that it was one.

    What is sealed for a resource stays so: only a reader who may have it opens that (ledger/privacy/secure_body.py).
    Raises KeyMissing (the vault knows no such key), SealBroken (it does not verify: changed, moved, or forged).
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
    """What is said of a seal at this place that no key opens; without a place, of one that its event's MAC belies."""
    if not place:
        return SealBroken("what is sealed in it does not verify: it was changed, or moved")
    return SealBroken(f"what is sealed at {place} does not verify: it was changed, or moved")


def _decrypted(key: DataKey, cipher: bytes, event_id: str, place: str, by: str) -> bytes:
    """Raises InvalidTag, ValueError."""
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
    vouch: Vouch = _as_stated,
    erased: Callable[[str], None] = lambda _place: None,
) -> Any:
    """A copy of a document with every sealed value in it opened, or its fallback; for orjson to write.

    `erased` hears the place of each fallback. Raises KeyMissing, SealBroken.
    """

    def read(sealed: str, otherwise: Any) -> Any:
        found = opened(sealed, look, event_id, place, by, vouch)
        if found is None:
            erased(place)
            return otherwise
        return orjson.Fragment(found)

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
    """Whether a text in this document begins as only a sealed one may."""
    if isinstance(data, str):
        return data.startswith(MARK)
    if isinstance(data, dict):
        return any(says_mark(value) for value in data.values())
    return isinstance(data, list) and any(says_mark(value) for value in data)


def _is_sealed(value: dict[str, Any]) -> bool:
    stated = value.get(OBJECT) if len(value) == 1 else None
    return isinstance(stated, str) and stated.startswith(MARK)

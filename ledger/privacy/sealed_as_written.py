"""Events that are sealed as our own writers seal them: opened as bytes, without parsing and writing them anew.

A parsed document is walked for its sealed values three times, in Python; here a pattern finds them, and their plaintext
takes their place. Which value stands where needs no parsing: the MAC bears out every byte of the data, and a seal opens
only at the place that it was made for. Whatever does not fit, opens elsewhere or names a key that is not there is left
to projections/engine/unsealing.py, which says what is wrong with it.
"""

from __future__ import annotations

import binascii
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import NamedTuple

from cryptography.exceptions import InvalidTag

from kledger.contract.entities import is_entity
from kledger.contract.seal_mark import MARK
from ledger.event import StoredEvent
from ledger.events import FACTS
from ledger.privacy.sealed import OBJECT, USER, Lookup, bound_to
from ledger.privacy.vault import DataKey
from ledger.wire.seal_mac import ATTRIBUTE
from ledger.wire.subjects import stated_by_in

_TEXT = r'"[^"\\\x00-\x1f]*"'
_OPTIONAL = ("traceparent", "traceid", "messageid", "causationid", "correlationid")
# What ledger/wire/envelope.py:encode writes before the data; texts with escapes are left to the other road.
_HEAD = re.compile(
    (
        r'(?P<attributes>\{"specversion":"1\.0","id":"(?P<id>[^"\\\x00-\x1f]*)","type":"(?P<type>[a-z_.]+)",'
        + ",".join(
            f'"{name}":{_TEXT}' for name in ("source", "subject", "time", "datacontenttype", "dataschema", "actor")
        )
        + "".join(f'(?:,"{name}":{_TEXT})?' for name in _OPTIONAL)
        + rf'),"{ATTRIBUTE}":"(?P<mac>[A-Za-z0-9+/=]+)","data":'
    ).encode()
)
_SEALED = re.compile(rf'"{MARK}([^"\\]*)"'.encode())
_OBJECT_OPENS = f'{{"{OBJECT}":'.encode()
_MARK = MARK.encode()


class Written(NamedTuple):
    """An event with sealed values, as our writers write it; `person` is whose key sealed all of them."""

    event: StoredEvent
    head: re.Match[bytes]
    seals: list[re.Match[bytes]]
    person: str


def as_written(event: StoredEvent) -> Written | None:
    """The sealed values of an event; None unless it has the form that our writers give it."""
    body = event.body
    head = _HEAD.match(body)
    if head is None or not body.endswith(b"}") or not _is_text(head["attributes"]):
        return None
    seals = list(_SEALED.finditer(body, head.end()))
    if not seals:
        return None
    prefix = seals[0][1].rpartition(b":")[0]
    person = _person(prefix)
    if person is None or not all(seal[1].startswith(prefix + b":") for seal in seals):
        return None
    return Written(event, head, seals, person)


def opened(written: Written, look: Lookup) -> bytes | None:
    """The body with its values opened and without the MAC; None where the other road has to say what it is."""
    event, head, seals, person = written
    key = look(person)
    if not isinstance(key, DataKey):
        return None
    body, event_id = event.body, head["id"].decode()
    if not key.witness.vouches_for(head["mac"], event.subject, event_id, body[head.end() : -1]):
        return None
    about = _About(event_id, stated_by_in(event.subject), look)
    named = _places(head["type"])
    parts, at = [head["attributes"], b',"data":'], head.end()
    places: tuple[str, ...] = ()
    for seal in seals:
        start, end = seal.span()
        if body.endswith(_OBJECT_OPENS, 0, start) and body[end : end + 1] == b"}":
            start, end = start - len(_OBJECT_OPENS), end + 1
        before = body[start - 1 : start]
        if before == b",":  # a further one of a list, right after the one before
            places = tuple(map(_next, places)) if start == at + 1 else ()
        elif before == b"[":
            places = tuple(f"{place}/0" for place in named.get(_name_before(body, start - 1), ()))
        else:
            places = named.get(_name_before(body, start), ())
        for place in places:
            plain = about.plaintext(seal[1], place)
            if plain is not None:
                places = (place,)
                break
        else:
            return None
        parts += (body[at:start], plain)
        at = end
    parts.append(body[at:])
    return b"".join(parts)


def _name_before(body: bytes, at: int) -> bytes:
    """The name of the value that begins there."""
    return body[body.rfind(b'"', 0, at - 2) + 1 : at - 2]


def _next(place: str) -> str:
    """The place of the next element of a list; none after what is no element."""
    listed, _, number = place.rpartition("/")
    return f"{listed}/{int(number) + 1}" if number.isdecimal() else ""


class _About(NamedTuple):
    """What the seals of an event are bound to, and where their keys are."""

    event_id: str
    by: str
    look: Lookup

    def plaintext(self, sealed: bytes, place: str) -> bytes | None:
        """The JSON of a sealed value, opened with one key after the other; None where they do not open it here."""
        about = bound_to(self.event_id, place, self.by)
        while True:
            name, _, cipher = sealed.rpartition(b":")
            person = _person(name)
            key = None if person is None else self.look(person)
            if not isinstance(key, DataKey):
                return None
            try:
                plain = key.decrypt(binascii.a2b_base64(cipher, strict_mode=True), about)
            except (InvalidTag, ValueError):
                return None
            if not plain.startswith(_MARK):
                return plain
            sealed = plain[len(_MARK) :]


@cache
def _places(kind: bytes) -> Mapping[bytes, tuple[str, ...]]:
    """Where the personal fields of an event's type stand in it, by their last name, which several may share."""
    fact = FACTS.get(kind.decode())
    places: dict[bytes, tuple[str, ...]] = {}
    for field in fact.personal if fact is not None else ():
        path = field.split(".")
        name = path[-1].encode()
        places[name] = (*places.get(name, ()), "/".join(("/data", *path)))
    return places


@lru_cache(maxsize=4096)
def _person(name: bytes) -> str | None:
    """The person of a key's name; None where it is no legal name of a person's key."""
    try:
        person = name.decode()
    except UnicodeDecodeError:
        return None
    return person if person.startswith(USER) and is_entity(person) else None


def _is_text(attributes: bytes) -> bool:
    try:
        attributes.decode()
    except UnicodeDecodeError:
        return False
    return True

"""Seal of an event: its free text encrypted with the keys of its persons, while the event is encoded.

Sealed texts take the place of those in clear among the fields of the fact, which are then written as JSON. The MAC is
made of the bytes that the log gets. A copy of the fact with sealed fields took three times as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import orjson
from pydantic import BaseModel

from ledger.event import Fact, JsonObject, NewEvent
from ledger.privacy.sealed import sealed_about
from ledger.privacy.vault import DataKey
from ledger.wire.plain_data import data_of, fields_of, written
from ledger.wire.subjects import stated_by

Paths = Mapping[str, "Paths | None"]
"""The personal fields of an object by name; those of a nested object, None for a field that is personal itself."""

Fields = tuple[tuple[str, bytes, "Fields | None"], ...]
"""The same, to be gone through: name, name as bytes, and the fields of a nested object."""


@dataclass(frozen=True, slots=True)
class EventSeal:
    """Seals the personal fields of a fact with all of these keys; the last one makes the MAC."""

    keys: tuple[DataKey, ...]

    def close(self, event: NewEvent, /) -> bytes:
        """See `Seal`."""
        data = data_of(event.fact)
        self._seal(data, _fields(type(event.fact)), f"{event.id}\n/data/".encode(), _after(event.org, event.actor))
        return written(data)

    def mac_of(self, event: NewEvent, subject: str, data: bytes, /) -> str:
        """See `Seal`."""
        return self.keys[-1].witness.mac_of(subject, event.id, data)

    def _seal(self, part: JsonObject, fields: Fields, before: bytes, after: bytes) -> None:
        """Seal some fields of an object. Their names stand between `before` and `after` in what a seal is bound to."""
        keys = self.keys
        for name, place, below in fields:
            value = part.get(name)
            if not value:
                continue
            if below is not None:
                part[name] = inside = fields_of(value).copy()
                self._seal(inside, below, before + place + b"/", after)
            elif isinstance(value, str):  # most are, and a call less for each is seen
                inner, about = orjson.dumps(value), before + place + after
                for key in keys:
                    inner = key.seal(inner, about)
                part[name] = inner.decode()
            elif isinstance(value, list):
                part[name] = [
                    sealed_about(each, keys, b"%b%b/%d%b" % (before, place, number, after))
                    for number, each in enumerate(value)
                ]
            else:
                part[name] = sealed_about(value, keys, before + place + after)


def has_personal(part: BaseModel, paths: Paths) -> bool:
    """Whether any of these fields says something."""
    values = part.__dict__  # looked up in the model, each takes three times as long
    for name, below in paths.items():
        value = values[name]
        if value and (below is None or has_personal(value, below)):
            return True
    return False


@cache
def _fields(fact: type[Fact]) -> Fields:
    """The personal fields of a fact, for sealing."""
    return _as_fields(personal_paths(fact))


def _as_fields(paths: Paths) -> Fields:
    return tuple((name, name.encode(), None if below is None else _as_fields(below)) for name, below in paths.items())


@lru_cache(maxsize=4096)
def _after(org: str, actor: str) -> bytes:
    """What stands behind the place in what a seal is bound to (ledger/privacy/sealed.py:bound_to)."""
    return f"\n{stated_by(org, actor)}".encode()


@cache
def personal_paths(fact: type[Fact]) -> Paths:
    """The personal fields of a fact."""
    paths: dict[str, Any] = {}
    for field in fact.personal:
        *above, name = field.split(".")
        at = paths
        for each in above:
            at = at.setdefault(each, {})
        at[name] = None
    return paths

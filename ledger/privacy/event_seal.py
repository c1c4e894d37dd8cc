"""Seal of an event: its free text encrypted with the keys of its persons, while the event is encoded.

The fact is turned into JSON once; sealed texts take the place of those in clear there, and the MAC is made of the bytes
that the log gets. A copy of the fact with sealed fields took twice as long.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import orjson
from pydantic import BaseModel
from pydantic_core import to_json

from ledger.event import Fact, NewEvent
from ledger.privacy.sealed import seal
from ledger.privacy.vault import DataKey
from ledger.wire.subjects import stated_by


@dataclass(frozen=True, slots=True)
class EventSeal:
    """Seals the personal fields of a fact with all of these keys; the last one makes the MAC."""

    keys: tuple[DataKey, ...]

    def __call__(self, event: NewEvent, subject: str, /) -> tuple[bytes, str]:
        """See `Seal`."""
        fact = event.fact
        by, keys = stated_by(event.org, event.actor), self.keys
        document = fact.__pydantic_serializer__.to_python(fact, mode="json")
        for path, place in _places(type(fact)):
            value = at(fact, path)
            if not value:
                continue
            holder = document
            for name in path[:-1]:
                holder = holder[name]
            if isinstance(value, list):
                holder[path[-1]] = [
                    seal(each, keys, event.id, f"{place}/{number}", by) for number, each in enumerate(value)
                ]
            else:
                holder[path[-1]] = seal(value, keys, event.id, place, by)
        witness = keys[-1].witness
        try:
            data = orjson.dumps(document)
        except TypeError:  # an integer of more than 64 bits, which pydantic writes and orjson does not
            data = to_json(document)
            return data, witness.mac(subject, event.id, orjson.loads(data))
        return data, witness.mac_of(subject, event.id, data)


def at(fact: BaseModel, path: Iterable[str]) -> Any:
    """The value of a field, also of a nested object; None where there is none."""
    value: Any = fact
    for name in path:
        value = getattr(value, name)
        if value is None:
            break
    return value


@cache
def personal_paths(fact: type[Fact]) -> tuple[tuple[str, ...], ...]:
    """The personal fields of a fact, each as the names that lead to it."""
    return tuple(tuple(field.split(".")) for field in fact.personal)


@cache
def _places(fact: type[Fact]) -> tuple[tuple[tuple[str, ...], str], ...]:
    """The same with the place of each in the event."""
    return tuple((path, "/".join(("/data", *path))) for path in personal_paths(fact))

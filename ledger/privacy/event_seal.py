"""Seal of an event: its free text encrypted with the keys of its persons, while the event is encoded.

The fact is turned into JSON once; sealed texts take the place of those in clear there, and the MAC is made of the bytes
that the log gets. A copy of the fact with sealed fields took three times as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import orjson
from pydantic import BaseModel

from ledger.event import Fact, JsonObject, NewEvent
from ledger.privacy.sealed import sealed_about
from ledger.privacy.vault import DataKey
from ledger.wire.subjects import stated_by

Paths = Mapping[str, "Paths | None"]
"""The personal fields of an object by name; those of a nested object, None for a field that is personal itself."""


@dataclass(frozen=True, slots=True)
class EventSeal:
    """Seals the personal fields of a fact with all of these keys; the last one makes the MAC."""

    keys: tuple[DataKey, ...]

    def __call__(self, event: NewEvent, subject: str, /) -> tuple[bytes, str]:
        """See `Seal`."""
        fact = event.fact
        document = fact.__pydantic_serializer__.to_python(fact, mode="json")
        by = stated_by(event.org, event.actor)
        self._seal(document, personal_paths(type(fact)), f"{event.id}\n/data/", f"\n{by}".encode())
        data = orjson.dumps(document)  # all of it: an event holds no integer beyond 64 bits
        return data, self.keys[-1].witness.mac_of(subject, event.id, data)

    def _seal(self, part: JsonObject, paths: Paths, before: str, after: bytes) -> None:
        """Seal some fields of an object. Their names stand between `before` and `after` in what a seal is bound to."""
        for name, below in paths.items():
            value = part.get(name)
            if not value:
                continue
            if below is not None:
                self._seal(value, below, f"{before}{name}/", after)
            elif isinstance(value, list):
                part[name] = [
                    sealed_about(each, self.keys, f"{before}{name}/{number}".encode() + after)
                    for number, each in enumerate(value)
                ]
            else:
                part[name] = sealed_about(value, self.keys, f"{before}{name}".encode() + after)


def has_personal(part: BaseModel, paths: Paths) -> bool:
    """Whether any of these fields says something."""
    for name, below in paths.items():
        value = getattr(part, name)
        if value and (below is None or has_personal(value, below)):
            return True
    return False


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

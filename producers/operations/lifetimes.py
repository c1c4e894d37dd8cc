"""Lifetimes of short memories by their kind, as the setting KLEDGER_MEMORY_LIFETIMES extends them.

The setting is `kind=time` separated by commas, a time being a number of d, h, m or s: `meeting=2d,mood=12h`. A lifetime
is stated by the save of a memory, so another setting changes nothing that was saved before.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from pydantic import TypeAdapter, ValidationError

from kledger.contract.errors import InvalidPayload
from kledger.contract.knowledge import KnowledgeType
from kledger.contract.memory import LIFETIMES, LONGEST_LIFE

VARIABLE = "KLEDGER_MEMORY_LIFETIMES"
_DAY = 86_400
_SECONDS = {"d": _DAY, "h": 3_600, "m": 60, "s": 1}
_ENTRY = re.compile(r"([^=]+)=(\d{1,9})([dhms])", re.ASCII)
_KIND: TypeAdapter[str] = TypeAdapter(KnowledgeType)


def lifetimes_from_environment() -> Mapping[str, int]:
    """The lifetimes of this node. Raises InvalidPayload."""
    stated = [part.strip() for part in os.environ.get(VARIABLE, "").split(",") if part.strip()]
    return {**LIFETIMES, **dict(map(_entry, stated))}


def _entry(text: str) -> tuple[str, int]:
    found = _ENTRY.fullmatch(text)
    seconds = 0 if found is None else int(found[2]) * _SECONDS[found[3]]
    try:
        kind = _KIND.validate_python("" if found is None else found[1].strip())
    except ValidationError:
        kind = ""
    if not kind or not 1 <= seconds <= LONGEST_LIFE:
        raise InvalidPayload(
            f"{VARIABLE} has {text[:40]!r}: write a kind and how long it lives, such as meeting=2d or mood=12h, up to "
            f"{LONGEST_LIFE // _DAY}d",
            errors=[{"field": VARIABLE, "reason": "is not kind=time"}],
        )
    return kind, seconds


def lifetime_of(kind: str | None, lifetimes: Mapping[str, int]) -> int:
    """The seconds that a short memory of this kind lives. Raises InvalidPayload."""
    if kind is not None and kind in lifetimes:
        return lifetimes[kind]
    known = ", ".join(lifetimes)
    named = "no kind" if kind is None else f"the kind {kind!r}, which has no lifetime here"
    raise InvalidPayload(
        f"a short memory states {named}: write one of {known}, or state its `lifetime` in seconds",
        errors=[{"field": "kind", "reason": f"is not one of {known}"}],
    )

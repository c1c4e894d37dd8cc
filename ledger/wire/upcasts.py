"""Upcasts: pure functions that convert an event's data from one schema version to the next.

A stored event is never rewritten; it is upcast each time it is read. One golden sample for each name and version
is in tests/golden and is never edited.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kledger.contract.errors import UnknownEvent, UnsupportedVersion
from ledger.event import Fact, JsonObject
from ledger.events import FACTS

Upcast = Callable[[JsonObject], JsonObject]


def _knowledge_saved_1_to_2(data: JsonObject) -> JsonObject:
    """Version 1 had a single `type` and the counts under `eval`; version 2 has `types` and the counts at top level."""
    rest = {name: value for name, value in data.items() if name not in ("type", "eval", "visibility")}
    evaluation = data.get("eval")
    if isinstance(evaluation, dict):
        for name in ("score", "helpful", "harmful", "confidence"):
            if name in evaluation:
                rest.setdefault(name, evaluation[name])
    if "type" in data:
        rest.setdefault("types", [data["type"]])
    return rest


def _without(field: str) -> Upcast:
    """An upcast for a version that did not have the field: one of that name is ignored, as it was then."""
    return lambda data: {name: value for name, value in data.items() if name != field}


UPCASTS: Mapping[tuple[str, int], Upcast] = {
    ("knowledge.saved", 1): _knowledge_saved_1_to_2,
    **{
        (fact.name, fact.version - back): _without(field)
        for fact in FACTS.values()
        for back, field in enumerate(reversed(fact.added), 1)
    },
}


def upcast(name: str, version: int, data: JsonObject) -> JsonObject:
    """Convert `data` to the current version of its event.

    Raises UnknownEvent for a name that is not in the vocabulary, UnsupportedVersion for a version that
    is newer than this program or that no upcast leads on from.
    """
    fact = FACTS.get(name)
    if fact is None:
        raise UnknownEvent(f"{name!r} is not an event of this ledger; known are {', '.join(FACTS)}")
    while version < fact.version:
        step = UPCASTS.get((name, version))
        if step is None:
            raise UnsupportedVersion(f"no upcast leads on from {name} version {version}")
        data, version = step(data), version + 1
    if version > fact.version:
        raise UnsupportedVersion(
            f"{name} version {version} is newer than this program, which knows {fact.version}; upgrade it"
        )
    return data


def known_versions(fact: type[Fact]) -> list[int]:
    """All versions of the event that can be read: those with an upcast, and the current one."""
    return sorted({v for name, v in UPCASTS if name == fact.name} | {fact.version})

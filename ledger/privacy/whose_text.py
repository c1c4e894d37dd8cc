"""Whose text an event holds: the persons whose keys seal it.

The free text of a fact (`Fact.personal`) is sealed with the keys of the persons it belongs to. Ids, types, owner,
scopes, versions, verdicts and lineage stay readable, so that gates and foreign readers need no key. What the answer
follows from depends on the kind of event alone, and is looked up in one step (`holding`): each event of a bulk asks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from ledger.event import Fact, NewEvent
from ledger.events.conflict import ConflictResolved
from ledger.events.document import DocumentFact, DocumentIngested
from ledger.events.evolution import EvolutionProposed
from ledger.events.extraction import ExtractionRequested
from ledger.events.knowledge import KnowledgeEvolved, KnowledgeReverted, KnowledgeRevised, KnowledgeSaved
from ledger.events.profile import ProfileFact
from ledger.events.resource import ResourceFact, ResourceSaved
from ledger.events.statement import StatementHeld
from ledger.events.summary import AbstractCompleted
from ledger.privacy.event_seal import Paths, has_personal, personal_paths
from ledger.privacy.personal import is_person, persons

Persons = tuple[str, ...]
"""Sorted."""
NOBODYS: Persons = ()

_ABOUT = {
    "evolution": ("item_id",),
    "slim": ("survivor",),
    "conflict": ("first", "second"),
    "statement": ("item_id",),
}
"""The fields of a process's facts with the ids of the items that they are about."""
_OF_THEIR_READERS = (
    *(KnowledgeSaved, KnowledgeRevised, ExtractionRequested, ResourceSaved, DocumentIngested, AbstractCompleted),
)
"""Facts that state the owner and scopes of what they say."""
_OF_WHAT_WAS_BEFORE = (
    *(KnowledgeReverted, KnowledgeEvolved, EvolutionProposed, ConflictResolved, AbstractCompleted),
    *(ResourceFact, DocumentFact),
)
"""Facts whose text may belong to others than they say, and than the items that they are about belong to."""


class Holding(NamedTuple):
    """What events of one kind hold of persons' text, and what says whose it is."""

    text: Paths
    """Fields of free text."""
    secrets: tuple[str, ...]
    """Fields of secrets."""
    owners: Callable[[NewEvent], Persons] | None
    """The persons that an event states beside its actor; None where it states none."""
    items: Callable[[NewEvent], tuple[str, ...]] | None
    """The items that it is about; None where it is about none that was there."""
    looks_back: bool
    """Whether its text may belong to persons by what was there before, which it does not say."""


@cache
def holding(fact: type[Fact]) -> Holding:
    """What events of this kind hold."""
    return Holding(
        personal_paths(fact), fact.sealed_only, _owners_of(fact), _items_of(fact), issubclass(fact, _OF_WHAT_WAS_BEFORE)
    )


def stated_persons(event: NewEvent) -> Persons:
    """The persons that an event belongs to according to the event alone: its actor and its owner."""
    own, owners_of = _alone(event.actor), holding(type(event.fact)).owners
    return own if owners_of is None else joined(own, owners_of(event))


def joined(some: Persons, more: Sequence[str]) -> Persons:
    """Both together."""
    if not more or some == more:
        return some
    return tuple(sorted({*some, *more}))


def has_text(fact: Fact) -> bool:
    """Whether the fact holds free text or a secret."""
    held = holding(type(fact))
    return has_personal(fact, held.text) or (
        bool(held.secrets) and any(getattr(fact, name) is not None for name in held.secrets)
    )


@lru_cache(maxsize=4096)
def _alone(entity: str) -> Persons:
    return (entity,) if is_person(entity) else NOBODYS


def _owners_of(fact: type[Fact]) -> Callable[[NewEvent], Persons] | None:
    if issubclass(fact, ProfileFact):
        return _owner_stated
    if issubclass(fact, _OF_THEIR_READERS):
        return _persons_stated
    return _readers_stated if issubclass(fact, StatementHeld) else None


def _owner_stated(event: NewEvent) -> Persons:
    return _alone(event.fact.owner)  # type: ignore[attr-defined]  # which these facts have


def _persons_stated(event: NewEvent) -> Persons:
    fact = event.fact
    return tuple(persons(fact.owner, fact.scopes or ()))  # type: ignore[attr-defined]  # which these facts have


def _readers_stated(event: NewEvent) -> Persons:
    return tuple(persons(event.actor, event.fact.scopes))  # type: ignore[attr-defined]  # which these facts have


def _items_of(fact: type[Fact]) -> Callable[[NewEvent], tuple[str, ...]] | None:
    if issubclass(fact, KnowledgeSaved):
        return None
    if fact.entity() == "knowledge":
        return _itself
    fields = _ABOUT.get(fact.entity())
    if fields is None:
        return None
    return lambda event: tuple(item for field in fields if (item := getattr(event.fact, field, None)) is not None)


def _itself(event: NewEvent) -> tuple[str, ...]:
    return (event.entity_id,)

"""Personal data in events: which persons an event belongs to, and whose keys seal their free text.

The free text of a fact (`Fact.personal`) is sealed with the keys of the persons it belongs to. Ids, types, owner,
scopes, versions, verdicts and lineage stay readable, so that gates and foreign readers need no key. A person is a
`user:`, except `user:local`, the name of an operator without an identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from kledger.contract.errors import InvalidPayload
from kledger.contract.scopes import OPERATOR
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
from ledger.privacy.event_seal import has_personal, personal_paths
from ledger.privacy.sealed import USER

NOBODY = OPERATOR

_ENTITY_ID = ("",)
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


def is_person(entity: str) -> bool:
    """Whether this entity is a person, who can be forgotten."""
    return entity.startswith(USER) and entity != NOBODY


def require_person(subject: str) -> None:
    """Raise InvalidPayload when this is not a person, who can be forgotten."""
    if not is_person(subject) or subject == USER:
        raise InvalidPayload(
            f"{subject!r} is not a person: write user:ID of somebody whom the ledger knows",
            errors=[{"field": "subject", "reason": "is not a person"}],
        )


def persons(owner: str | None, scopes: Iterable[str]) -> list[str]:
    """The persons an item belongs to: its owner or, when that is not a person, all persons among its scopes.

    An ACL grants reading, not ownership: forgetting one of its readers must not erase the item for the others.
    """
    if owner is not None and is_person(owner):
        return [owner]
    return sorted(scope for scope in set(scopes) if is_person(scope))


def stated_persons(event: NewEvent) -> list[str]:
    """The persons that an event belongs to according to the event alone: its actor and its owner."""
    actor = event.actor
    actors = [actor] if is_person(actor) else []
    owners_of = _owners_of(type(event.fact))
    if owners_of is None:
        return actors
    owners = owners_of(event)
    return owners if not actors or owners == actors else sorted({*actors, *owners})


@cache
def _owners_of(fact: type[Fact]) -> Callable[[NewEvent], list[str]] | None:
    """What reads the persons that events of this kind state beside their actor; None where they state none."""
    if issubclass(fact, ProfileFact):
        return _owner_stated
    if issubclass(fact, _OF_THEIR_READERS):
        return _persons_stated
    return _readers_stated if issubclass(fact, StatementHeld) else None


def _owner_stated(event: NewEvent) -> list[str]:
    owner: str = event.fact.owner  # type: ignore[attr-defined]
    return [owner] if is_person(owner) else []


def _persons_stated(event: NewEvent) -> list[str]:
    fact = event.fact
    return persons(fact.owner, fact.scopes or ())  # type: ignore[attr-defined]


def _readers_stated(event: NewEvent) -> list[str]:
    return persons(event.actor, event.fact.scopes)  # type: ignore[attr-defined]


def about_items(event: NewEvent) -> tuple[str, ...]:
    """The items whose persons the event's text belongs to as well; none where the event itself names all of them."""
    fields = _fields_of_items(type(event.fact))
    if fields is _ENTITY_ID:
        return (event.entity_id,)
    return tuple(item for field in fields if (item := getattr(event.fact, field, None)) is not None)


@cache
def _fields_of_items(fact: type[Fact]) -> tuple[str, ...]:
    """The fields of a fact with the ids of the items that it is about; none where it is about none that was there."""
    if issubclass(fact, KnowledgeSaved):
        return ()
    return _ENTITY_ID if fact.entity() == "knowledge" else _ABOUT.get(fact.entity(), ())


@cache
def looks_back(fact: type[Fact]) -> bool:
    """Whether facts of this kind may belong to persons by what was there before, which they do not say."""
    return issubclass(fact, _OF_WHAT_WAS_BEFORE)


def has_text(fact: Fact) -> bool:
    """Whether the fact holds free text or a secret."""
    kind = type(fact)
    return has_personal(fact, personal_paths(kind)) or (
        bool(kind.sealed_only) and any(getattr(fact, name) is not None for name in kind.sealed_only)
    )

"""Personal data in events: which persons an event belongs to, and whose keys seal their free text.

The free text of a fact (`Fact.personal`) is sealed with the keys of the persons it belongs to. Ids, types, owner,
scopes, versions, verdicts and lineage stay readable, so that gates and foreign readers need no key. A person is a
`user:`, except `user:local`, the name of an operator without an identity.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from kledger.contract.errors import InvalidPayload
from kledger.contract.scopes import OPERATOR
from ledger.event import Fact, NewEvent
from ledger.events.document import DocumentIngested
from ledger.events.extraction import ExtractionRequested
from ledger.events.knowledge import KnowledgeRevised, KnowledgeSaved
from ledger.events.profile import ProfileFact
from ledger.events.resource import ResourceSaved
from ledger.events.statement import StatementHeld
from ledger.events.summary import AbstractCompleted
from ledger.privacy.event_seal import has_personal, personal_paths
from ledger.privacy.sealed import USER

NOBODY = OPERATOR

_ENTITY_ID = ""
_ABOUT = {"evolution": "item_id", "slim": "survivor", "conflict": "first", "statement": "item_id"}
"""The field of a process's facts with the id of the item that they are about."""
_OF_THEIR_READERS = (
    *(KnowledgeSaved, KnowledgeRevised, ExtractionRequested, ResourceSaved, DocumentIngested, AbstractCompleted),
)
"""Facts that state the owner and scopes of what they say."""


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
    entities = [event.actor] if is_person(event.actor) else []
    if not _states_persons(type(event.fact)):
        return entities
    fact = event.fact
    if isinstance(fact, ProfileFact):
        entities += [fact.owner] if is_person(fact.owner) else []
    elif isinstance(fact, _OF_THEIR_READERS):
        entities += persons(fact.owner, fact.scopes or ())
    elif isinstance(fact, StatementHeld):
        entities += persons(event.actor, fact.scopes)
    return sorted(set(entities)) if len(entities) > 1 else entities


@cache
def _states_persons(fact: type[Fact]) -> bool:
    return issubclass(fact, (ProfileFact, *_OF_THEIR_READERS, StatementHeld))


def about_item(event: NewEvent) -> str | None:
    """The item whose persons the event's text belongs to as well; None when the event itself names all its persons."""
    field = _field_of_item(type(event.fact))
    return event.entity_id if field == _ENTITY_ID else None if field is None else getattr(event.fact, field, None)


@cache
def _field_of_item(fact: type[Fact]) -> str | None:
    """The field of a fact with the id of the item that it is about; None where it is about none that was there."""
    if issubclass(fact, KnowledgeSaved):
        return None
    return _ENTITY_ID if fact.entity() == "knowledge" else _ABOUT.get(fact.entity())


def has_text(fact: Fact) -> bool:
    """Whether the fact holds free text or a secret."""
    return has_personal(fact, personal_paths(type(fact))) or any(
        getattr(fact, name) is not None for name in fact.sealed_only
    )

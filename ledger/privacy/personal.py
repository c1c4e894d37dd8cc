"""Personal data in events: which persons an event belongs to, and the sealing of their free text.

The free text of a fact (`Fact.personal`) is sealed with the keys of the persons it belongs to. Ids, types, owner,
scopes, versions, verdicts and lineage stay readable, so that gates and foreign readers need no key. A person is a
`user:`, except `user:local`, the name of an operator without an identity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import orjson
from pydantic import BaseModel

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
from ledger.privacy.sealed import USER, seal
from ledger.privacy.vault import DataKey
from ledger.wire.subjects import event_subject, stated_by

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
    return any(_at(fact, path) for path in _paths(type(fact))) or any(
        getattr(fact, name) is not None for name in fact.sealed_only
    )


def sealed_event(event: NewEvent, keys: Sequence[DataKey]) -> NewEvent:
    """The event with its text sealed with all of these keys, and a MAC by the last; unchanged without keys."""
    if not keys:
        return event

    by = stated_by(event.org, event.actor)

    def sealing(value: Any, place: str) -> Any:
        return seal(value, keys, event.id, place, by)

    fact = _changed(event.fact, sealing)
    subject = event_subject(event.org, fact.entity(), event.entity_id, fact.verb(), event.actor)
    data = orjson.loads(fact.__pydantic_serializer__.to_json(fact))
    return replace(event, fact=fact, sealmac=keys[-1].witness.mac(subject, event.id, data))


def _at(fact: BaseModel, path: Iterable[str]) -> Any:
    value: Any = fact
    for name in path:
        value = getattr(value, name)
        if value is None:
            break
    return value


@cache
def _paths(fact: type[Fact]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(field.split(".")) for field in fact.personal)


def _changed(fact: Fact, change: Callable[[Any, str], Any]) -> Fact:
    """The fact with `change(value, place)` instead of the value of each non-empty personal field."""
    updates: dict[str, Any] = {}
    for path in _paths(type(fact)):
        value = _at(fact, path)
        if not value:
            continue
        place = "/".join(("/data", *path))
        if isinstance(value, list):
            new: Any = [change(each, f"{place}/{number}") for number, each in enumerate(value)]
        else:
            new = change(value, place)
        head, *rest = path
        if not rest:
            updates[head] = new
        else:
            part: BaseModel = updates.get(head) or getattr(fact, head)
            updates[head] = part.model_copy(update={rest[0]: new})
    return fact.model_copy(update=updates) if updates else fact

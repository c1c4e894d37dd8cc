"""Validation of one event by the pydantic models: the authority on every event that SQL cannot prove valid."""

from __future__ import annotations

from typing import Any

import orjson

from kledger.contract.bounds import STRICTER
from kledger.contract.errors import IllegalSubject, InvalidPayload
from kledger.contract.scopes import check_seen
from ledger.event import Fact, StoredEvent
from ledger.wire.envelope import Envelope, decode_envelope, decode_fact, schema_name
from ledger.wire.subjects import parse_subject


def validated(event: StoredEvent) -> tuple[Envelope, Fact]:
    """The envelope and fact of a valid event. Raises a LedgerError that says what is wrong."""
    subject = parse_subject(event.subject)
    envelope = decode_envelope(event.body, event.stored_ns)
    fact = decode_fact(envelope, event.stored_ns)
    entity, _, entity_id = envelope.subject.partition("/")
    if f"{subject.entity}.{subject.event}" != fact.name:
        raise IllegalSubject(
            f"the subject says {subject.entity}.{subject.event}, the event says {fact.name}: publish it to the "
            "subject of its type"
        )
    if (subject.entity, subject.entity_id) != (entity, entity_id):
        raise IllegalSubject(
            f"the subject is about {subject.entity}/{subject.entity_id}, the event about {envelope.subject}"
        )
    if "\0" in subject.org:
        raise IllegalSubject("the tenant that the subject names holds a NUL character")
    if (fault := fact.fault_of_id(entity_id)) is not None:
        raise InvalidPayload(f"the id {entity_id[:200]!r} {fault}", errors=[])
    if fact.stated_id() not in (None, entity_id):
        raise IllegalSubject(f"the event is about {envelope.subject}, its data about {fact.stated_id()}")
    if subject.actor != envelope.actor:
        raise IllegalSubject(f"the subject's actor is {subject.actor}, the event names {envelope.actor}")
    if event.stored_ns >= STRICTER and not envelope.actor.isascii() and fact.by_anybody:
        check_seen("actor", envelope.actor)
    return envelope, fact


def canonical_body(envelope: Envelope, fact: Fact) -> bytes:
    """The event's body as our own encoder would have written it."""
    attributes: dict[str, Any] = envelope.model_dump(exclude={"data", "dataschema", "time"}, exclude_none=True)
    attributes["time"] = envelope.time.isoformat()
    attributes["dataschema"] = schema_name(type(fact), fact.stated_version())
    attributes["data"] = orjson.Fragment(fact.__pydantic_serializer__.to_json(fact))
    return orjson.dumps(attributes)

"""Event envelope: CloudEvents 1.0 in structured JSON, with the lineage extensions.

https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md. The whole envelope is
the message body; only `Nats-Msg-Id` and the concurrency headers are set outside it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Annotated, Literal

import orjson
from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, Field, ValidationError

from kledger.contract.bounds import STRICTER, Short
from kledger.contract.errors import BadJson, InvalidPayload, PayloadTooLarge, SecretInClear
from kledger.contract.faults import in_plain_words
from kledger.contract.json_text import TWICE, repeated_key
from kledger.contract.scope_fields import Entity
from ledger.event import NO_LINEAGE, Fact, JsonObject, NewEvent
from ledger.events import FACTS
from ledger.wire.plain_data import data_of, written
from ledger.wire.seal_mac import ATTRIBUTE
from ledger.wire.subjects import event_subject
from ledger.wire.upcasts import upcast

SCHEMA_PREFIX = "urn:kledger:"
# The broker's max_payload includes headers; ours are under 1 KiB plus the subject.
MAX_BODY_BYTES = 1024 * 1024 - 8 * 1024
_LONGEST_PLACE = 200
NUL = b"\\u0000"
"""The JSON escape of NUL, which no text of an event may contain."""
_SCHEMA = re.compile(r"urn:kledger:([a-z_]+\.[a-z_]+):([1-9][0-9]{0,8})")


def in_utc(moment: datetime) -> datetime:
    """The same moment in UTC; ValueError where the calendar of years 1 to 9999 has no such day."""
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("is in UTC not within the years 1 to 9999") from error


class Envelope(BaseModel):
    """The attributes of one event. `subject` is `{entity}/{entity_id}`, `dataschema` names the version."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    specversion: Literal["1.0"] = "1.0"
    id: Short
    type: Short
    source: Short
    subject: Annotated[str, Field(min_length=1, max_length=1024)]
    time: Annotated[AwareDatetime, AfterValidator(in_utc)]
    datacontenttype: Literal["application/json"] = "application/json"
    dataschema: Annotated[str, Field(pattern=r"^urn:kledger:[a-z_]+\.[a-z_]+:[1-9][0-9]{0,8}$")]
    actor: Entity
    traceparent: Short | None = None
    traceid: Short | None = None
    messageid: Short | None = None
    causationid: Short | None = None
    correlationid: Short | None = None
    data: JsonObject


def schema_name(fact: type[Fact], version: int | None = None) -> str:
    """`urn:kledger:knowledge.saved:2`: the `dataschema` of an event."""
    return f"{SCHEMA_PREFIX}{fact.name}:{version or fact.version}"


def subject_of(event: NewEvent) -> str:
    """Where an event is published. Raises IllegalSubject."""
    entity, verb = _names(type(event.fact))
    return event_subject(event.org, entity, event.entity_id, verb, event.actor)


@cache
def _names(fact: type[Fact]) -> tuple[str, str]:
    return fact.entity(), fact.verb()


@cache
def _kind(fact: type[Fact]) -> tuple[str, str]:
    """The type of events of one kind, and the beginning of their `subject`."""
    return fact.name, fact.entity() + "/"


_schema = cache(schema_name)


def encode(event: NewEvent) -> bytes:
    """Encode the message body of an event. Raises PayloadTooLarge when the broker would refuse it, IllegalSubject."""
    return encode_for(subject_of(event), event)


def encode_for(subject: str, event: NewEvent) -> bytes:
    """The same of an event that is published to this subject. Raises PayloadTooLarge."""
    data = _data_of(event)
    return _body(event, _attributes(event, _mac_of(event, subject, data)), data)


def encode_all(events: Sequence[NewEvent], subjects: Sequence[str]) -> list[bytes]:
    """Encode the message bodies of events, which are published to these subjects. Raises PayloadTooLarge.

    One step after the other is taken for all of them: the processor then has the code of one step at hand, and a sealed
    event takes a quarter less than one that takes all steps alone.
    """
    data = [_data_of(event) for event in events]
    macs = [_mac_of(event, subject, each) for event, subject, each in zip(events, subjects, data, strict=True)]
    attributes = [_attributes(event, mac) for event, mac in zip(events, macs, strict=True)]
    return [_body(event, begin, each) for event, begin, each in zip(events, attributes, data, strict=True)]


def _data_of(event: NewEvent) -> bytes:
    """The data of an event as JSON, sealed where it has a seal."""
    return written(data_of(event.fact)) if event.seal is None else event.seal.close(event)


def _mac_of(event: NewEvent, subject: str, data: bytes) -> str:
    return "" if event.seal is None else event.seal.mac_of(event, subject, data)


def _body(event: NewEvent, attributes: bytes, data: bytes) -> bytes:
    """Attributes and data together. As a fragment within the attributes, the data would be copied several times."""
    body = b"".join((attributes, b',"data":', data, b"}"))
    if len(body) > MAX_BODY_BYTES:
        raise PayloadTooLarge(
            f"{event.fact.name} of {event.entity_id[:80]!r} has {len(body):,} bytes, {MAX_BODY_BYTES:,} are "
            f"allowed: {shorter(event)}"
        )
    return body


def shorter(event: NewEvent) -> str:
    """What to do about an event that is too large."""
    several = event.fact.entity() == "resource"
    advice = "keep it in several resources" if several else "keep long text as a resource and refer to it"
    return advice if event.seal is None else f"{advice} (what a person says is sealed, and takes a third more bytes)"


def _attributes(event: NewEvent, mac: str) -> bytes:
    """The attributes of an event as JSON, without the brace that closes them."""
    fact, lineage = event.fact, event.lineage
    kind = type(fact)
    name, entity = _kind(kind)
    attributes: JsonObject = {
        "specversion": "1.0",
        "id": event.id,
        "type": name,
        "source": event.source,
        "subject": entity + event.entity_id,
        "time": event.time,
        "datacontenttype": "application/json",
        "dataschema": _schema(kind, fact.stated_version()) if kind.added else _schema(kind),
        "actor": event.actor,
    }
    if lineage is not NO_LINEAGE:
        if lineage.traceparent:
            attributes["traceparent"] = lineage.traceparent
        if lineage.trace_id:
            attributes["traceid"] = lineage.trace_id
        if lineage.message_id:
            attributes["messageid"] = lineage.message_id
        if lineage.causation_id:
            attributes["causationid"] = lineage.causation_id
        if lineage.correlation_id:
            attributes["correlationid"] = lineage.correlation_id
    if mac:
        attributes[ATTRIBUTE] = mac
    return orjson.dumps(attributes)[:-1]


def parse_json(body: bytes | str) -> object:
    """Parse JSON. Raises BadJson with the place of the fault."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise BadJson(f"not valid JSON: {error}") from error


def refuse_nul(document: object, what: str) -> None:
    """Raise InvalidPayload naming the first field of `document` that holds a NUL character."""
    stack: list[tuple[str, object]] = [("", document)]
    while stack:
        place, value = stack.pop()
        if isinstance(value, str):
            if "\0" in value:
                reason = "holds a NUL character, which the views cannot keep: remove it"
                raise InvalidPayload(
                    f"{what} does not fit: {place or 'it'} {reason}",
                    errors=[{"field": place, "reason": reason}],
                )
        elif isinstance(value, Mapping):
            for name, part in value.items():
                stack += [(_within(place, name), part), (place, name)]
        elif isinstance(value, list | tuple):
            stack += [(_within(place, index), part) for index, part in enumerate(value)]


def _within(place: str, name: object) -> str:
    """The path of a nested value, cut to a length that fits into an error message."""
    return f"{place}.{str(name)[:_LONGEST_PLACE]}".lstrip(".")[:_LONGEST_PLACE]


def decode_envelope(body: bytes, stored_ns: int | None = None) -> Envelope:
    """Read an envelope. `stored_ns` says which bounds hold, as in decode_fact. Raises BadJson or InvalidPayload."""
    document = parse_json(body)
    if (stored_ns is None or stored_ns >= STRICTER) and (place := repeated_key(body, document)) is not None:
        raise InvalidPayload(f"the event does not fit: {place} {TWICE}", errors=[{"field": place, "reason": TWICE}])
    if NUL in body:
        refuse_nul(document, "the event")
    if not isinstance(document, dict):
        raise InvalidPayload("the envelope is not a JSON object", errors=[])
    try:
        return Envelope.model_validate_json(body)
    except ValidationError as error:
        raise invalid_payload("the envelope", error) from error


def decode_fact(envelope: Envelope, stored_ns: int | None = None) -> Fact:
    """Decode an event's fact, upcast to the current version of its schema.

    `stored_ns` says which bounds hold (kledger/contract/bounds.py:LATER); of what is not stored yet, all of them.
    Raises UnknownEvent, UnsupportedVersion, SecretInClear, or InvalidPayload.
    """
    match = _SCHEMA.fullmatch(envelope.dataschema)
    if match is None or match[1] != envelope.type:
        raise InvalidPayload(
            f"dataschema {envelope.dataschema!r} does not name the event type {envelope.type!r}: write "
            f"{SCHEMA_PREFIX}{envelope.type}:VERSION",
            errors=[],
        )
    version = int(match[2])
    data = upcast(envelope.type, version, envelope.data)
    try:
        fact = FACTS[envelope.type].model_validate_json(orjson.dumps(data), context={"stored_ns": stored_ns})
    except (ValidationError, orjson.JSONEncodeError) as error:
        _refuse_secret(FACTS[envelope.type], error)
        raise invalid_payload(f"data of {envelope.type}", error) from error
    base, stated = fact.version - len(fact.added), fact.stated_version()
    if base < version != stated:
        name = fact.added[version - base - 1]
        raise InvalidPayload(
            f"{fact.name} states {name} in version {version}: state it, or write version {stated}",
            errors=[{"field": name, "reason": "is not stated"}],
        )
    return fact


def _refuse_secret(fact: type[Fact], error: ValidationError | TypeError) -> None:
    """Raise SecretInClear when the validation error is in a field that may hold sealed values only."""
    if not fact.sealed_only or not isinstance(error, ValidationError):
        return
    for fault in error.errors(include_url=False, include_input=False, include_context=False):
        if fault["loc"] and fault["loc"][0] in fact.sealed_only:
            raise SecretInClear(
                f"{fault['loc'][0]} of {fact.name} is not sealed: save it over HTTP, which seals it. The log holds "
                "it as it was published, so change the secret"
            ) from None


def invalid_payload(what: str, error: ValidationError | TypeError) -> InvalidPayload:
    """The error that names the wrong fields of `what`, with reasons."""
    if not isinstance(error, ValidationError):
        return InvalidPayload(f"{what} does not fit: {error}", errors=[])
    errors = [
        {"field": ".".join(str(part) for part in fault["loc"]), "reason": in_plain_words(fault)}
        for fault in error.errors(include_url=False, include_input=False)
    ]
    summary = "; ".join(f"{e['field'] or 'it'} {e['reason']}" for e in errors[:5])
    return InvalidPayload(f"{what} does not fit its schema: {summary}", errors=errors)

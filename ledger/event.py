"""Core event types: a fact, its actor, its entity, and its lineage.

One type for each stage: a `NewEvent` is to be appended, `Appended` is the acknowledgement with the position, and a
`StoredEvent` is what the stream holds at a position.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, NamedTuple, Protocol

from pydantic import model_validator

from kledger.contract.bounds import fault_of_id
from kledger.contract.part import Part

DEFAULT_ORG = "default"

JsonObject = dict[str, Any]

FROM = ("origin", "source", "case")
"""Fields of a fact's data that may hold a `trace_id` and a `message_id`. All of them are lineage of the event, beside
the ids of its envelope. Where only one can be shown, the envelope's comes first, then these in order."""


class Example:
    """A complete example of an event: what it is about, who publishes it, and the fields of its data.

    The generated reference shows it, and tests publish it.
    """

    __slots__ = ("actor", "data", "entity_id")

    def __init__(self, entity_id: str, actor: str, /, **data: Any) -> None:
        self.entity_id, self.actor, self.data = entity_id, actor, data


class Fact(Part):
    """The payload of an event: the `data` of its envelope. One subclass for each event name, at its current version."""

    name: ClassVar[str]
    """`{entity}.{what happened}`, in the past tense: `knowledge.saved`."""
    version: ClassVar[int] = 1
    personal: ClassVar[tuple[str, ...]]
    """Fields with free text, also of a nested object (`case.reason`): sealed with the keys of the persons it belongs to
    (ledger/privacy/personal.py). Every event states them, and `()` where it has none."""
    example: ClassVar[Example]
    """Every event has one."""
    at_least_one: ClassVar[tuple[str, ...]] = ()
    """Optional fields of which at least one must be set."""
    builds_on: ClassVar[str] = "expected_version"
    """The field, if any, with the version of the entity that the fact builds on."""
    added: ClassVar[tuple[str, ...]] = ()
    """Fields that the last versions of the schema added, one each, the oldest first: an event is written and shown as
    the version of the last one that it states, without those that are null."""
    by_anybody: ClassVar[bool] = False
    """Whether others than the owner state it in their own name: who they are has to be seen whole."""
    sealed_only: ClassVar[tuple[str, ...]] = ()
    """Fields that hold a secret. They are sealed before the fact is made; an event with one in clear is refused."""

    @model_validator(mode="before")
    @classmethod
    def _check_at_least_one(cls, data: Any) -> Any:
        fields = cls.at_least_one
        if fields and isinstance(data, dict) and all(data.get(name) is None for name in fields):
            raise ValueError(f"{cls.name} states at least one of {', '.join(fields)}")
        return data

    def stated_version(self) -> int:
        """The version of the schema that the event is written in."""
        version, values = self.version, self.__dict__
        for name in reversed(self.added):
            if values[name] is not None:
                return version
            version -= 1
        return version

    def stated_id(self) -> str | None:
        """The entity id in the data, for facts whose data has one; else None."""
        return None

    @classmethod
    def fault_of_id(cls, entity_id: str) -> str | None:
        """The fault of the entity's id; None when it is valid, or when the data has the id (and checks it)."""
        return None if cls.stated_id is not Fact.stated_id else fault_of_id(entity_id)

    @classmethod
    def entity(cls) -> str:
        """`knowledge` of `knowledge.saved`."""
        return cls.name.partition(".")[0]

    @classmethod
    def verb(cls) -> str:
        """`saved` of `knowledge.saved`."""
        return cls.name.partition(".")[2]


@dataclass(frozen=True, slots=True)
class Lineage:
    """Where a fact came from: trace, message, cause. Every part is optional and is kept as given."""

    trace_id: str | None = None
    message_id: str | None = None
    causation_id: str | None = None
    correlation_id: str | None = None
    traceparent: str | None = None


NO_LINEAGE = Lineage()


def new_event_id() -> str:
    return str(uuid.uuid4())


def utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class NewEvent:
    """A fact to append, with its envelope. `entity_id` is what it is about, `actor` (`kind:id`) who publishes it.

    `expects` is for optimistic concurrency: the position of the entity's last event that the writer knows (0: there is
    none). When the entity has a later one, the append is refused with VersionConflict. `seal` seals the text of the
    fact; the fact itself stays in clear, in memory alone.
    """

    fact: Fact
    entity_id: str
    actor: str
    org: str = DEFAULT_ORG
    lineage: Lineage = NO_LINEAGE
    source: str = "urn:kledger"
    id: str = field(default_factory=new_event_id)
    time: datetime = field(default_factory=utc_now)
    expects: int | None = None
    seal: Seal | None = None

    def sealed_by(self, seal: Seal) -> NewEvent:
        """The same with this seal. Many have one, so the slots are set, in a third of the time of `replace`."""
        sealed: NewEvent = _blank(NewEvent)
        _put_fact(sealed, self.fact)
        _put_entity_id(sealed, self.entity_id)
        _put_actor(sealed, self.actor)
        _put_org(sealed, self.org)
        _put_lineage(sealed, self.lineage)
        _put_source(sealed, self.source)
        _put_id(sealed, self.id)
        _put_time(sealed, self.time)
        _put_expects(sealed, self.expects)
        _put_seal(sealed, seal)
        return sealed


_blank = object.__new__
_puts = [NewEvent.__dict__[name].__set__ for name in NewEvent.__slots__]
_put_fact, _put_entity_id, _put_actor, _put_org, _put_lineage = _puts[:5]
_put_source, _put_id, _put_time, _put_expects, _put_seal = _puts[5:]


class Seal(Protocol):
    """Seals an event while it is encoded (ledger/privacy/event_seal.py)."""

    def close(self, event: NewEvent, /) -> bytes:
        """The event's data as JSON, its text sealed."""

    def mac_of(self, event: NewEvent, subject: str, data: bytes, /) -> str:
        """The MAC of the event with these data, sealed and as JSON (ledger/wire/seal_mac.py); empty for none."""


class Appended(NamedTuple):
    """The acknowledgement of an append: the event's position; `duplicate` when an earlier append had stored this id."""

    position: int
    event_id: str
    duplicate: bool = False


class StoredEvent(NamedTuple):
    """A message of the stream: `position` counts from 1 without gaps, `stored_ns` is the broker's UTC clock.

    `message_id` is the `Nats-Msg-Id` header as it was published, empty where a foreign client set none.
    """

    position: int
    stored_ns: int
    subject: str
    body: bytes
    message_id: str = ""


def size_of(events: Iterable[StoredEvent]) -> int:
    """About how much memory events take: a foreign client's message id may be larger than its body."""
    return sum([len(event.body) + len(event.message_id) for event in events])


class Head(NamedTuple):
    """The end of the stream: its last position (0 when empty) and that event's `stored_ns`."""

    position: int
    stored_ns: int

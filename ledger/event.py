"""What an event is: a fact, who stated it about what, and where it came from (lineage).

The stages of life have their own names: a `NewEvent` is asked for, `Appended` says where it was kept,
a `StoredEvent` is what the stream holds at a position.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar, NamedTuple

from pydantic import BaseModel, ConfigDict, model_validator

from ledger.privacy.seal_mark import MARK

DEFAULT_ORG = "default"

MOST_POSITION = 2**63 - 1
"""A position or version is a signed 64-bit number in every view: an event that says more is refused."""

MAX_ID = 200
"""Characters of an id."""

FROM = ("origin", "source", "case")
"""The parts of a fact's data, where it has them, that name a `trace_id` and a `message_id`. All are links of the event,
beside those of its envelope; where only one can be named, it is the envelope's, else the first of these."""


def fault_of_id(entity_id: str) -> str | None:
    """What is wrong with the id of something that is to be kept; None when nothing is."""
    if not 1 <= len(entity_id) <= MAX_ID:
        return f"has {len(entity_id)} characters, 1 to {MAX_ID} are allowed"
    if not entity_id.isprintable() or entity_id != entity_id.strip():
        return "has control characters or blanks around it: an id is printable text"
    if entity_id.startswith(MARK):
        return f"begins with {MARK}, as a sealed value does: choose another id"
    return None


class Fact(BaseModel):
    """What an event says: the `data` of its envelope. One subclass an event name and current version.

    Unknown fields are ignored, so that a newer writer does not break an older reader.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    name: ClassVar[str]
    """`{entity}.{what happened}`, in the past tense: `knowledge.saved`."""
    version: ClassVar[int] = 1
    at_least_one: ClassVar[tuple[str, ...]] = ()
    """Optional fields of which at least one must say something."""
    builds_on: ClassVar[str] = "expected_version"
    """The field, where there is one, that says which version of the entity the fact builds on."""
    added: ClassVar[tuple[str, ...]] = ()
    """Fields that the current version has beside those of the one before. They are null in an event of that one, which
    is written, and shown, as that one: without them."""
    sealed_only: ClassVar[tuple[str, ...]] = ()
    """Fields that hold a secret, sealed before the fact is made: in clear the event is refused."""

    @model_validator(mode="before")
    @classmethod
    def _says_something(cls, data: Any) -> Any:
        stated = cls.at_least_one
        if stated and isinstance(data, dict) and all(data.get(name) is None for name in stated):
            raise ValueError(f"{cls.name} states at least one of {', '.join(stated)}")
        return data

    def stated_version(self) -> int:
        """The version of the schema that the event is written in."""
        if self.added and all(getattr(self, name) is None for name in self.added):
            return self.version - 1
        return self.version

    def stated_id(self) -> str | None:
        """The entity id as the data itself states it, for facts whose data does."""
        return None

    @classmethod
    def fault_of_id(cls, entity_id: str) -> str | None:
        """What is wrong with the id of what the event is about; None when nothing is, or when its data states it."""
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
    """Where a fact came from; every part is optional and is kept as given (mission L3)."""

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
    """A fact to append. `entity_id` names what it is about, `actor` (`kind:id`) who states it.

    `expects` is the position of the last event of this entity that the writer knows (0: there is none);
    when the entity's history has moved on, the append is refused with VersionConflict. `sealmac` bears out what is
    sealed in it (ledger/privacy/seal_witness.py); empty where nothing is.
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
    sealmac: str = ""


@dataclass(frozen=True, slots=True)
class Appended:
    """Where the stream keeps an event; `duplicate` when an earlier append of the same id had kept it."""

    position: int
    event_id: str
    duplicate: bool = False


class StoredEvent(NamedTuple):
    """What the stream holds: `position` counts from 1 without gaps, `stored_ns` is the broker's UTC clock.

    `message_id` is the `Nats-Msg-Id` header as it was published, empty where a foreign client set none.
    """

    position: int
    stored_ns: int
    subject: str
    body: bytes
    message_id: str = ""


class Head(NamedTuple):
    """The end of the stream: its last position (0 when empty) and that event's `stored_ns`."""

    position: int
    stored_ns: int


JsonObject = dict[str, Any]

"""Input and output types of the gate, shared with the rules of each entity."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Literal, NamedTuple

import duckdb

from ledger.event import FROM, Fact, StoredEvent
from ledger.wire.envelope import Envelope

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Candidate(NamedTuple):
    """One event as the gate sees it; `helpful` and `harmful` are the cases that it adds to its item.

    Null unless the event has them: `scopes`, the item's new scopes; `readers`, its ACL's entities; `writers`, those of
    them who may revise it; `through`, the scope through which the actor reads the item; `lifetime`, the seconds that
    a short memory lives; `cause`, of a promotion; `served` and `visible`, a recall's items where it counts, and its
    reader's scopes; `shared_kind`, the kind of a saved memory that a project has to approve; `member` and `roles`, of
    a project.
    """

    position: int
    stored_us: int
    type: str
    event_id: str
    actor: str
    org: str
    entity_id: str
    owner: str | None
    expected_version: int | None
    helpful: int
    harmful: int
    scopes: list[str] | None = None
    readers: list[str] | None = None
    writers: list[str] | None = None
    through: str | None = None
    lifetime: int | None = None
    cause: str | None = None
    served: list[str] | None = None
    visible: list[str] | None = None
    trace_id: str | None = None
    correlation_id: str | None = None
    shared_kind: str | None = None
    member: str | None = None
    roles: list[str] | None = None


_CANDIDATES = f"SELECT {', '.join(Candidate._fields)} FROM "
CANDIDATES = _CANDIDATES + "envelopes ORDER BY position"
"""The query of a batch's candidates, over its narrow columns."""
REST = _CANDIDATES + "rest ORDER BY position"
"""The same of those that were not judged as a set."""


def as_candidates(rows: Sequence[Sequence[Any]]) -> list[Candidate]:
    """The rows of CANDIDATES as named tuples."""
    return list(map(Candidate._make, rows))


class Ruling(NamedTuple):
    """Verdict of the rules: refused with a code and a reason, or accepted with the version that the event makes.

    `version` is the number of the new version in the entity's history (None when the event makes none), `closes` the
    position of the version that it ends, `status` the status that an item has with it.
    """

    code: str | None = None
    reason: str | None = None
    version: int | None = None
    closes: int | None = None
    status: str | None = None


ACCEPTED = Ruling()


class Rules(ABC):
    """The rules of one kind of entity, with the current state of the batch's entities where they depend on it."""

    def __init__(self, con: duckdb.DuckDBPyConnection, about: str) -> None:  # noqa: B027 - some need no state
        """Look up the state of the entities `about`."""

    @abstractmethod
    def decide(self, event: Candidate) -> Ruling:
        """Judge one event, in stream order; when it is accepted, apply it to the entity's state."""

    def write(self, con: duckdb.DuckDBPyConnection) -> None:  # noqa: B027 - for some the fold keeps it
        """Save the state after the batch's last event, where the fold does not keep what there is to know."""


@dataclass(frozen=True)
class Counted:
    """An accepted event of a small batch, as decoded by the models, with what the gate ruled of its version."""

    event: StoredEvent
    envelope: Envelope
    fact: Fact
    org: str
    entity_id: str
    version: int | None
    closes: int | None
    status: str | None

    @property
    def position(self) -> int:
        return self.event.position

    @property
    def stored_us(self) -> int:
        return self.event.stored_ns // 1000

    @property
    def happened_us(self) -> int:
        """The publisher's time, in microseconds since 1970."""
        return (self.envelope.time - _EPOCH) // timedelta(microseconds=1)

    @cached_property
    def trace_id(self) -> str | None:
        """The envelope's trace id, else the first in the data."""
        return next(iter(self.named("trace_id")), None)

    @cached_property
    def message_id(self) -> str | None:
        """The envelope's message id, else the first in the data."""
        return next(iter(self.named("message_id")), None)

    def named(self, field: Literal["trace_id", "message_id"]) -> list[str]:
        """Every trace or message id in the event, each once, the envelope's first."""
        own = self.envelope.traceid if field == "trace_id" else self.envelope.messageid
        stated = self.fact.__dict__  # a model looks an absent field up for much longer
        parts = [part for name in FROM if (part := stated.get(name)) is not None]
        return [*dict.fromkeys(filter(None, [own, *(getattr(part, field) for part in parts)]))]


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused event and the reason; its raw bytes stay readable in `refused_events`."""

    event: StoredEvent
    code: str
    reason: str

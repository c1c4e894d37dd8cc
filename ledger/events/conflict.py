"""Events of conflicts between items. Both items stay; the entity id is the conflict's."""

from __future__ import annotations

from typing import ClassVar

from kledger.contract.bounds import Reason
from kledger.contract.knowledge import Id, Version
from ledger.event import Fact
from ledger.events.process import ProcessFact


class ConflictRecorded(ProcessFact):
    """`second` says something that `first` denies."""

    name: ClassVar[str] = "conflict.recorded"

    first: Id
    first_version: Version
    second: Id
    second_version: Version
    reason: str
    extraction: Id | None = None


class ConflictResolved(ProcessFact):
    """The owner decided: one of them holds, or (with no winner) both do."""

    name: ClassVar[str] = "conflict.resolved"
    follows: ClassVar[tuple[str, ...]] = ("recorded",)

    winner: Id | None = None
    reason: Reason | None = None


FACTS: tuple[type[Fact], ...] = (ConflictRecorded, ConflictResolved)

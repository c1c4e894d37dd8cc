"""Events of conflicts between items. Both items stay; the entity id is the conflict's."""

from __future__ import annotations

from typing import ClassVar

from kledger.contract.bounds import Reason
from kledger.contract.knowledge import Id, Version
from ledger.event import Example, Fact
from ledger.events.examples import AUTHOR, CONFLICT, ITEM, OTHER
from ledger.events.process import ProcessFact


class ConflictRecorded(ProcessFact):
    """`second` says something that `first` denies."""

    name: ClassVar[str] = "conflict.recorded"
    personal: ClassVar[tuple[str, ...]] = ("reason",)
    example: ClassVar[Example] = Example(
        CONFLICT,
        AUTHOR,
        first=ITEM,
        first_version=2,
        second=OTHER,
        second_version=1,
        reason="one says before, one after",
    )

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
    personal: ClassVar[tuple[str, ...]] = ("reason",)
    example: ClassVar[Example] = Example(CONFLICT, AUTHOR, winner=ITEM, reason="tried it")

    winner: Id | None = None
    reason: Reason | None = None


FACTS: tuple[type[Fact], ...] = (ConflictRecorded, ConflictResolved)

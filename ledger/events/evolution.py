"""Events of an evolution, in which a model rewrites an item: requested, proposed, then applied or rejected.

The entity id is the evolution's. Applying and reverting are events of the item: `knowledge.evolved` and
`knowledge.reverted` name the evolution.
"""

from __future__ import annotations

from typing import ClassVar

from kledger.contract.bounds import ModelName
from kledger.contract.knowledge import Id, Text, Version
from ledger.event import Fact
from ledger.events.process import CallStarted, Failed, ProcessFact, Rejected
from ledger.events.usage import Usage


class EvolutionRequested(ProcessFact):
    """A model is to rewrite the item, as it was at `base_version`, in the light of `feedback`."""

    name: ClassVar[str] = "evolution.requested"

    item_id: Id
    base_version: Version
    feedback: Text
    apply: bool = True
    model: ModelName | None = None


class EvolutionStarted(CallStarted):
    """The model is about to be asked."""

    name: ClassVar[str] = "evolution.started"
    follows: ClassVar[tuple[str, ...]] = ("requested", "started")


class EvolutionProposed(ProcessFact):
    """What the model made of the item."""

    name: ClassVar[str] = "evolution.proposed"
    follows: ClassVar[tuple[str, ...]] = ("requested", "started")

    item_id: Id
    content: Text
    task: str | None = None
    reason: str | None = None
    usage: Usage


class EvolutionRejected(Rejected):
    """The owner keeps the item as it is."""

    name: ClassVar[str] = "evolution.rejected"
    follows: ClassVar[tuple[str, ...]] = ("proposed",)

    item_id: Id


class EvolutionFailed(Failed):
    """No proposal came of it."""

    name: ClassVar[str] = "evolution.failed"
    follows: ClassVar[tuple[str, ...]] = ("requested", "started", "proposed")

    item_id: Id


FACTS: tuple[type[Fact], ...] = (
    EvolutionRequested,
    EvolutionStarted,
    EvolutionProposed,
    EvolutionRejected,
    EvolutionFailed,
)

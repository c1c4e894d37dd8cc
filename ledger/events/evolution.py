"""Events of an evolution, in which a model rewrites an item: requested, proposed, then applied or rejected.

The entity id is the evolution's. Applying and reverting are events of the item: `knowledge.evolved` and
`knowledge.reverted` name the evolution.
"""

from __future__ import annotations

from typing import ClassVar

from kledger.contract.bounds import ModelName
from kledger.contract.knowledge import Id, Text, Version
from ledger.event import Example, Fact
from ledger.events.examples import AUTHOR, EVOLUTION, ITEM
from ledger.events.process import CallStarted, Failed, ProcessFact, Rejected
from ledger.events.usage import EXAMPLE_USAGE, Usage


class EvolutionRequested(ProcessFact):
    """A model is to rewrite the item, as it was at `base_version`, in the light of `feedback`."""

    name: ClassVar[str] = "evolution.requested"
    by_anybody: ClassVar[bool] = True
    personal: ClassVar[tuple[str, ...]] = ("feedback",)
    example: ClassVar[Example] = Example(EVOLUTION, AUTHOR, item_id=ITEM, base_version=2, feedback="先等数据库就绪")

    item_id: Id
    base_version: Version
    feedback: Text
    apply: bool = True
    model: ModelName | None = None


class EvolutionStarted(CallStarted):
    """The model is about to be asked."""

    name: ClassVar[str] = "evolution.started"
    follows: ClassVar[tuple[str, ...]] = ("requested", "started")
    example: ClassVar[Example] = Example(EVOLUTION, AUTHOR, call=f"{EVOLUTION}-1", model="small-model")


class EvolutionProposed(ProcessFact):
    """What the model made of the item."""

    name: ClassVar[str] = "evolution.proposed"
    follows: ClassVar[tuple[str, ...]] = ("requested", "started")
    personal: ClassVar[tuple[str, ...]] = ("task", "content", "reason")
    example: ClassVar[Example] = Example(
        EVOLUTION,
        AUTHOR,
        item_id=ITEM,
        content="`make db`, wait for it, then `make test`.",
        reason="said to wait",
        usage=EXAMPLE_USAGE,
    )

    item_id: Id
    content: Text
    task: str | None = None
    reason: str | None = None
    usage: Usage


class EvolutionRejected(Rejected):
    """The owner keeps the item as it is."""

    name: ClassVar[str] = "evolution.rejected"
    follows: ClassVar[tuple[str, ...]] = ("proposed",)
    example: ClassVar[Example] = Example(EVOLUTION, AUTHOR, item_id=ITEM, reason="it was right before")

    item_id: Id


class EvolutionFailed(Failed):
    """No proposal came of it."""

    name: ClassVar[str] = "evolution.failed"
    follows: ClassVar[tuple[str, ...]] = ("requested", "started", "proposed")
    example: ClassVar[Example] = Example(
        EVOLUTION, AUTHOR, item_id=ITEM, code="model_failed", reason="no answer within 60 s"
    )

    item_id: Id


FACTS: tuple[type[Fact], ...] = (
    EvolutionRequested,
    EvolutionStarted,
    EvolutionProposed,
    EvolutionRejected,
    EvolutionFailed,
)

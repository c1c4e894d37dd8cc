"""Events of a slim, which merges similar items: requested, proposed group by group, applied or reverted as a whole.

The entity id is the slim's. The effects are events of the items: `knowledge.absorbed`, `merged`, `unmerged`,
`reverted`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from kledger.contract.bounds import UNSIGNED_ZERO, Document, ModelName, Reason, Threshold
from kledger.contract.knowledge import Count, Id, Scopes, Text, Types, Version
from kledger.contract.part import Part
from kledger.contract.scope_fields import SeenEntity
from ledger.event import Example, Fact
from ledger.events.examples import AUTHOR, ITEM, OTHER, SLIM
from ledger.events.process import CallStarted, Failed, ProcessFact, Rejected
from ledger.events.usage import EXAMPLE_USAGE, Usage

Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False), UNSIGNED_ZERO]


class Similar(Part):
    """One item that is to be merged: its version then, and how similar it is to the survivor."""

    id: Id
    version: Version
    similarity: Share


class Skipped(Part):
    """A group that was left as it is, and why."""

    group: Count
    reason: str


class SlimRequested(ProcessFact):
    """Similar items of one owner, within these scopes, are to be merged. Without a model the best one is kept."""

    name: ClassVar[str] = "slim.requested"
    personal: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[Example] = Example(
        SLIM, AUTHOR, owner=AUTHOR, scopes=["project:ledger"], model="small-model", threshold=0.85
    )

    owner: SeenEntity
    scopes: Scopes | None = None
    model: ModelName | None = None
    threshold: Threshold
    apply: bool = True


class SlimStarted(CallStarted):
    """A model is about to be asked about one group."""

    name: ClassVar[str] = "slim.started"
    follows: ClassVar[tuple[str, ...]] = ("requested",)
    repeatable: ClassVar[bool] = True
    example: ClassVar[Example] = Example(SLIM, AUTHOR, call=f"{SLIM}-0", model="small-model")


class SlimProposed(ProcessFact):
    """One group: who survives, who is merged into it, and the merged text where a model wrote one."""

    name: ClassVar[str] = "slim.proposed"
    follows: ClassVar[tuple[str, ...]] = ("requested",)
    repeatable: ClassVar[bool] = True
    personal: ClassVar[tuple[str, ...]] = ("task", "content", "tags")
    example: ClassVar[Example] = Example(
        SLIM,
        AUTHOR,
        group=0,
        survivor=ITEM,
        survivor_version=2,
        merged=[Similar(id=OTHER, version=1, similarity=0.93)],
        content="`make db`, then `make test`.",
        usage=EXAMPLE_USAGE,
    )

    group: Count
    survivor: Id
    survivor_version: Version
    merged: Annotated[list[Similar], Field(min_length=1, max_length=1_000)]
    types: Types | None = None
    task: str | None = None
    content: Text | None = None
    tags: Document | None = None
    usage: Usage | None = None


class SlimReported(ProcessFact):
    """Every group is proposed: what was looked at, and what would become of it."""

    name: ClassVar[str] = "slim.reported"
    follows: ClassVar[tuple[str, ...]] = ("requested",)
    personal: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[Example] = Example(SLIM, AUTHOR, candidates=120, groups=1, items=2, seconds=0.4)

    candidates: Count
    groups: Count
    items: Count
    seconds: Annotated[float, Field(ge=0.0, le=1_000_000_000.0, allow_inf_nan=False), UNSIGNED_ZERO]


class SlimApproved(ProcessFact):
    """The owner wants what was proposed; stated again, it reminds whoever is at work."""

    name: ClassVar[str] = "slim.approved"
    follows: ClassVar[tuple[str, ...]] = ("reported", "approved")
    personal: ClassVar[tuple[str, ...]] = ("reason",)
    example: ClassVar[Example] = Example(SLIM, AUTHOR, reason="they say the same")

    reason: Reason | None = None


class SlimApplied(ProcessFact):
    """Every group was merged but those that had changed meanwhile."""

    name: ClassVar[str] = "slim.applied"
    follows: ClassVar[tuple[str, ...]] = ("reported", "approved")
    personal: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[Example] = Example(SLIM, AUTHOR, groups=1)

    groups: Count
    skipped: Annotated[list[Skipped], Field(max_length=10_000)] = Field(default_factory=list)


class SlimWithdrawn(ProcessFact):
    """The owner wants every group as it was before; stated again, it reminds whoever is at work."""

    name: ClassVar[str] = "slim.withdrawn"
    follows: ClassVar[tuple[str, ...]] = ("applied", "failed", "withdrawn")
    personal: ClassVar[tuple[str, ...]] = ("reason",)
    example: ClassVar[Example] = Example(SLIM, AUTHOR, reason="both were needed")

    reason: Reason | None = None


class SlimReverted(ProcessFact):
    """Every group is as it was before but those that had changed meanwhile."""

    name: ClassVar[str] = "slim.reverted"
    follows: ClassVar[tuple[str, ...]] = ("applied", "withdrawn")
    personal: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[Example] = Example(
        SLIM, AUTHOR, groups=0, skipped=[Skipped(group=0, reason="the survivor has changed since")]
    )

    groups: Count
    skipped: Annotated[list[Skipped], Field(max_length=10_000)] = Field(default_factory=list)


class SlimRejected(Rejected):
    """The owner leaves everything as it is."""

    name: ClassVar[str] = "slim.rejected"
    follows: ClassVar[tuple[str, ...]] = ("reported",)
    example: ClassVar[Example] = Example(SLIM, AUTHOR, reason="both are needed")


class SlimFailed(Failed):
    """It ended before every group was proposed, or before what was proposed could be applied."""

    name: ClassVar[str] = "slim.failed"
    follows: ClassVar[tuple[str, ...]] = ("requested", "reported", "approved")
    example: ClassVar[Example] = Example(
        SLIM, AUTHOR, code="model_failed", reason="no answer within 60 s", usage=EXAMPLE_USAGE
    )


FACTS: tuple[type[Fact], ...] = (
    SlimRequested,
    SlimStarted,
    SlimProposed,
    SlimReported,
    SlimApproved,
    SlimApplied,
    SlimWithdrawn,
    SlimReverted,
    SlimRejected,
    SlimFailed,
)

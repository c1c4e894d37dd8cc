"""Events of a slim, which merges similar items: requested, proposed group by group, applied or reverted as a whole.

The entity id is the slim's. The effects are events of the items: `knowledge.absorbed`, `merged`, `unmerged`,
`reverted`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from kledger.contract.bounds import UNSIGNED_ZERO, Document, ModelName, Reason, Threshold
from kledger.contract.knowledge import Count, Id, Scopes, Text, Types, Version
from kledger.contract.scopes import Entity
from ledger.event import Fact
from ledger.events.process import CallStarted, Failed, ProcessFact, Rejected
from ledger.events.usage import Usage

Share = Annotated[float, Field(ge=0.0, le=1.0, allow_inf_nan=False), UNSIGNED_ZERO]


class Similar(BaseModel):
    """One item that is to be merged: its version then, and how similar it is to the survivor."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    id: Id
    version: Version
    similarity: Share


class Skipped(BaseModel):
    """A group that was left as it is, and why."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    group: Count
    reason: str


class SlimRequested(ProcessFact):
    """Similar items of one owner, within these scopes, are to be merged. Without a model the best one is kept."""

    name: ClassVar[str] = "slim.requested"

    owner: Entity
    scopes: Scopes | None = None
    model: ModelName | None = None
    threshold: Threshold
    apply: bool = True


class SlimStarted(CallStarted):
    """A model is about to be asked about one group."""

    name: ClassVar[str] = "slim.started"
    follows: ClassVar[tuple[str, ...]] = ("requested",)
    repeatable: ClassVar[bool] = True


class SlimProposed(ProcessFact):
    """One group: who survives, who is merged into it, and the merged text where a model wrote one."""

    name: ClassVar[str] = "slim.proposed"
    follows: ClassVar[tuple[str, ...]] = ("requested",)
    repeatable: ClassVar[bool] = True

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

    candidates: Count
    groups: Count
    items: Count
    seconds: Annotated[float, Field(ge=0.0, le=1_000_000_000.0, allow_inf_nan=False), UNSIGNED_ZERO]


class SlimApproved(ProcessFact):
    """The owner wants what was proposed; stated again, it reminds whoever is at work."""

    name: ClassVar[str] = "slim.approved"
    follows: ClassVar[tuple[str, ...]] = ("reported", "approved")

    reason: Reason | None = None


class SlimApplied(ProcessFact):
    """Every group was merged but those that had changed meanwhile."""

    name: ClassVar[str] = "slim.applied"
    follows: ClassVar[tuple[str, ...]] = ("reported", "approved")

    groups: Count
    skipped: Annotated[list[Skipped], Field(max_length=10_000)] = Field(default_factory=list)


class SlimWithdrawn(ProcessFact):
    """The owner wants every group as it was before; stated again, it reminds whoever is at work."""

    name: ClassVar[str] = "slim.withdrawn"
    follows: ClassVar[tuple[str, ...]] = ("applied", "failed", "withdrawn")

    reason: Reason | None = None


class SlimReverted(ProcessFact):
    """Every group is as it was before but those that had changed meanwhile."""

    name: ClassVar[str] = "slim.reverted"
    follows: ClassVar[tuple[str, ...]] = ("applied", "withdrawn")

    groups: Count
    skipped: Annotated[list[Skipped], Field(max_length=10_000)] = Field(default_factory=list)


class SlimRejected(Rejected):
    """The owner leaves everything as it is."""

    name: ClassVar[str] = "slim.rejected"
    follows: ClassVar[tuple[str, ...]] = ("reported",)


class SlimFailed(Failed):
    """It ended before every group was proposed, or before what was proposed could be applied."""

    name: ClassVar[str] = "slim.failed"
    follows: ClassVar[tuple[str, ...]] = ("requested", "reported", "approved")


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

"""Events of a knowledge item: saved, revised, rated, evolved, merged, …

The entity id of these events is the item's id. `rated`, `confirmed` and `scored` are open to all readers of the item
(ledger/readers.py), as is `promoted` by a confirmation; `revised` and `evolved` are open to its owner and the writers
in its ACL, `expired` and `promoted` by recalls to the node, all others to its owner only. Of a memory that a project
shares, `approved` and `rejected` are open to the project's coordinators alone, and `revised`, `retired`, `restored` and
`superseded` to them beside its owner.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field

from kledger.contract.bounds import Document, Reason, ResourceIds, Short
from kledger.contract.knowledge import (
    MOST_SHARED,
    AclEntry,
    Case,
    Confidence,
    Count,
    Id,
    Scopes,
    Score,
    Source,
    Text,
    Types,
    Version,
    each_entity_once,
)
from kledger.contract.memory import PERSONAL as MEMORY_TEXTS
from kledger.contract.memory import Lifetime, Memory
from kledger.contract.part import Part
from kledger.contract.scope_fields import Entity, Scope, SeenEntity
from kledger.contract.words import ItemStatus, PromotionCause, Verdict
from ledger import new_item
from ledger.event import Example, Fact
from ledger.events.examples import AUTHOR, COORDINATOR, EVOLUTION, ITEM, MESSAGE, OTHER, SLIM, TASK, TRACE, USER

Through = Annotated[Scope | None, Field(exclude_if=lambda value: value is None)]
"""The scope or entity among the item's readers through which the actor reads it; null in version 1 of an event."""


class Origin(Part):
    """Where and when an item is from, as who saves it says so of the whole item, beside what its source says.

    The dates are those of where it was before: an item of the ledger is as old as its events.
    """

    trace_id: Short | None = None
    message_id: Short | None = None
    created_at: Short | None = None
    updated_at: Short | None = None


ITEM_TEXTS = ("task", "content", "tags", "source.name", "source.category", "source.urls", "source.submitted_by")
CASE_TEXTS = ("case.task", "case.query", "case.outcome", "case.reason")


class Bulk(Part):
    """The request that changed many items at once: its id, and who asked for it."""

    id: Id
    by: Entity


BULK = Bulk(id="bulk-5f2c9e0d7a1b4c36", by=USER)
OfBulk = Annotated[Bulk | None, Field(exclude_if=lambda value: value is None)]
"""The bulk that an event is part of; null in version 1 of an event, and where the item was changed alone."""


class ItemFact(Fact):
    """An event of an item, with what it means for the item's status (ledger/item_status.py)."""

    makes: ClassVar[ItemStatus | None] = None
    """The status that the item has after it; None where it keeps the one before."""
    taken_in: ClassVar[tuple[ItemStatus, ...]] = ()
    """The statuses in which an item takes it; any, where none is named."""
    states_anew: ClassVar[bool] = False
    """Whether it states anew what an item says or who reads it: a project's approval was of what it was before."""


class KnowledgeSaved(ItemFact):
    """A new item. Version 1 was the form with a single `type` and no score; 3 has `origin`, 4 `memory`, 5 `supersedes`.

    A memory of a shared kind that a project reads is proposed, until a coordinator of the project approves it.
    """

    name: ClassVar[str] = "knowledge.saved"
    makes: ClassVar[ItemStatus | None] = "active"
    version: ClassVar[int] = 5
    added: ClassVar[tuple[str, ...]] = ("origin", "memory", "supersedes")
    personal: ClassVar[tuple[str, ...]] = (*ITEM_TEXTS, *(f"memory.{name}" for name in MEMORY_TEXTS))
    example: ClassVar[Example] = Example(
        ITEM,
        AUTHOR,
        types=["strategy", "tool"],
        task=TASK,
        content="Start the container with `make db` first; the tests then need no further settings.",
        tags={"category": "habit", "domain": "testing"},
        scopes=["project:ledger", AUTHOR],
        owner=AUTHOR,
        source=Source(category="exp", urls=["https://example.com/testing"], agent_id="research_agent"),
        origin=Origin(trace_id=TRACE, message_id=MESSAGE),
        memory=Memory(
            layer="procedural",
            kind="habit",
            importance=0.5,
            name="Prepare the tests",
            trigger=TASK,
            steps=["1. `make db`", "2. `make test`"],
        ),
        supersedes=OTHER,
    )

    types: Types
    task: str
    content: Text
    tags: Document = Field(default_factory=dict)
    scopes: Scopes
    owner: SeenEntity
    resource_ids: ResourceIds = Field(default_factory=list)
    source: Source = Source()
    score: Score = new_item.SCORE
    helpful: Count = new_item.HELPFUL
    harmful: Count = new_item.HARMFUL
    confidence: Confidence = new_item.CONFIDENCE
    origin: Annotated[Origin | None, Field(exclude_if=lambda value: value is None)] = None
    memory: Annotated[Memory | None, Field(exclude_if=lambda value: value is None)] = None
    supersedes: Annotated[Id | None, Field(exclude_if=lambda value: value is None)] = None


class KnowledgeRevised(ItemFact):
    """Some fields are stated anew; what is absent or null stays. Scopes and owner are for the owner to state."""

    name: ClassVar[str] = "knowledge.revised"
    states_anew: ClassVar[bool] = True
    at_least_one: ClassVar[tuple[str, ...]] = (
        "types",
        "task",
        "content",
        "tags",
        "scopes",
        "owner",
        "resource_ids",
        "source",
    )
    personal: ClassVar[tuple[str, ...]] = (*ITEM_TEXTS, "reason")
    example: ClassVar[Example] = Example(ITEM, AUTHOR, content="`make db` first, then `make test`.", reason="shorter")

    types: Types | None = None
    task: str | None = None
    content: Text | None = None
    tags: Document | None = None
    scopes: Scopes | None = None
    owner: SeenEntity | None = None
    resource_ids: ResourceIds | None = None
    source: Source | None = None
    expected_version: Version | None = None
    reason: Reason | None = None


class KnowledgeRated(ItemFact):
    """The item helped or harmed, with the case that shows it. `through`: the actor reads it through this."""

    name: ClassVar[str] = "knowledge.rated"
    version: ClassVar[int] = 2
    added: ClassVar[tuple[str, ...]] = ("through",)
    by_anybody: ClassVar[bool] = True
    personal: ClassVar[tuple[str, ...]] = CASE_TEXTS
    example: ClassVar[Example] = Example(
        ITEM,
        USER,
        verdict="helpful",
        case=Case(query=TASK, outcome="passed", trace_id="trace-81c0"),
        through="project:ledger",
    )

    verdict: Verdict
    case: Case = Case()
    through: Through = None


class KnowledgeScored(ItemFact):
    """Somebody gave the item a new score, 1 (poor) to 5. `through`: the actor reads it through this."""

    name: ClassVar[str] = "knowledge.scored"
    version: ClassVar[int] = 2
    added: ClassVar[tuple[str, ...]] = ("through",)
    by_anybody: ClassVar[bool] = True
    personal: ClassVar[tuple[str, ...]] = ("reason",)
    example: ClassVar[Example] = Example(ITEM, USER, score=4, reason="saved an hour", through="project:ledger")

    score: Score
    reason: Reason | None = None
    through: Through = None


class KnowledgeRetired(ItemFact):
    """The owner, or a coordinator, takes the item out of recall; it stays readable, with its history."""

    name: ClassVar[str] = "knowledge.retired"
    version: ClassVar[int] = 2
    added: ClassVar[tuple[str, ...]] = ("bulk",)
    makes: ClassVar[ItemStatus | None] = "retired"
    taken_in: ClassVar[tuple[ItemStatus, ...]] = ("active", "expired", "proposed", "rejected", "superseded")
    personal: ClassVar[tuple[str, ...]] = ("reason",)
    example: ClassVar[Example] = Example(ITEM, AUTHOR, reason="the container is gone", bulk=BULK)

    reason: Reason | None = None
    bulk: OfBulk = None


class KnowledgeRestored(ItemFact):
    """The owner, or a coordinator, brings back what is retired, expired or superseded."""

    name: ClassVar[str] = "knowledge.restored"
    version: ClassVar[int] = 2
    added: ClassVar[tuple[str, ...]] = ("bulk",)
    makes: ClassVar[ItemStatus | None] = "active"
    taken_in: ClassVar[tuple[ItemStatus, ...]] = ("retired", "expired", "superseded")
    personal: ClassVar[tuple[str, ...]] = ("reason",)
    example: ClassVar[Example] = Example(ITEM, AUTHOR, reason="the container is back", bulk=BULK)

    reason: Reason | None = None
    bulk: OfBulk = None


class KnowledgeConfirmed(ItemFact):
    """Somebody said again what the item says: evidence for it, not another item.

    `through`: the actor reads the item through this.
    """

    name: ClassVar[str] = "knowledge.confirmed"
    version: ClassVar[int] = 2
    added: ClassVar[tuple[str, ...]] = ("through",)
    by_anybody: ClassVar[bool] = True
    personal: ClassVar[tuple[str, ...]] = CASE_TEXTS
    example: ClassVar[Example] = Example(
        ITEM, USER, case=Case(task=TASK, message_id="msg-0050"), through="project:ledger"
    )

    case: Case = Case()
    through: Through = None


class KnowledgeEvolved(ItemFact):
    """A proposal of a model became the item's content; what the model said of it is in `evolution.proposed`."""

    name: ClassVar[str] = "knowledge.evolved"
    taken_in: ClassVar[tuple[ItemStatus, ...]] = ("active",)
    states_anew: ClassVar[bool] = True
    builds_on: ClassVar[str] = "base_version"
    personal: ClassVar[tuple[str, ...]] = ("task", "content")
    example: ClassVar[Example] = Example(
        ITEM, AUTHOR, evolution=EVOLUTION, base_version=2, content="`make db`, wait for it, then `make test`."
    )

    evolution: Id
    base_version: Version
    content: Text
    task: str | None = None


class KnowledgeReverted(ItemFact):
    """The owner states an earlier version anew, whole; `cause` names the evolution or slim that it undoes."""

    name: ClassVar[str] = "knowledge.reverted"
    states_anew: ClassVar[bool] = True
    personal: ClassVar[tuple[str, ...]] = ITEM_TEXTS
    example: ClassVar[Example] = Example(
        ITEM,
        AUTHOR,
        to_version=2,
        types=["strategy", "tool"],
        task=TASK,
        content="`make db` first, then `make test`.",
        tags={"category": "habit", "domain": "testing"},
        scopes=["project:ledger", AUTHOR],
        resource_ids=[],
        source=Source(category="exp", urls=["https://example.com/testing"], agent_id="research_agent"),
        score=4,
        cause=EVOLUTION,
    )

    to_version: Version
    types: Types
    task: str
    content: Text
    tags: Document
    scopes: Scopes
    resource_ids: ResourceIds
    source: Source
    score: Score
    cause: Id | None = None


class KnowledgeAbsorbed(ItemFact):
    """The item took the place of others that said nearly the same; what is absent or null stays as it was."""

    name: ClassVar[str] = "knowledge.absorbed"
    taken_in: ClassVar[tuple[ItemStatus, ...]] = ("active",)
    states_anew: ClassVar[bool] = True
    personal: ClassVar[tuple[str, ...]] = ("task", "content", "tags")
    example: ClassVar[Example] = Example(
        ITEM, AUTHOR, slim=SLIM, merged=[OTHER], content="`make db`, then `make test`."
    )

    slim: Id
    merged: Annotated[list[Id], Field(min_length=1, max_length=1_000)]
    types: Types | None = None
    task: str | None = None
    content: Text | None = None
    tags: Document | None = None
    resource_ids: ResourceIds | None = None


class KnowledgeMerged(ItemFact):
    """The item left recall in favour of another one; it stays readable, with its history."""

    name: ClassVar[str] = "knowledge.merged"
    makes: ClassVar[ItemStatus | None] = "merged"
    taken_in: ClassVar[tuple[ItemStatus, ...]] = ("active",)
    personal: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[Example] = Example(OTHER, AUTHOR, into=ITEM, slim=SLIM)

    into: Id
    slim: Id


class KnowledgeUnmerged(ItemFact):
    """A merge was undone: the item is active again."""

    name: ClassVar[str] = "knowledge.unmerged"
    makes: ClassVar[ItemStatus | None] = "active"
    taken_in: ClassVar[tuple[ItemStatus, ...]] = ("merged",)
    personal: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[Example] = Example(OTHER, AUTHOR, slim=SLIM)

    slim: Id


class KnowledgeShared(ItemFact):
    """The owner states the whole ACL of the item anew; an empty one leaves it to its scopes."""

    name: ClassVar[str] = "knowledge.shared"
    version: ClassVar[int] = 2
    added: ClassVar[tuple[str, ...]] = ("bulk",)
    states_anew: ClassVar[bool] = True
    personal: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[Example] = Example(
        ITEM,
        AUTHOR,
        acl=[
            AclEntry(entity="department:finance", permission="read"),
            AclEntry(entity=USER, permission="read_write"),
        ],
        bulk=BULK,
    )

    acl: Annotated[list[AclEntry], Field(max_length=MOST_SHARED), AfterValidator(each_entity_once)]
    bulk: OfBulk = None

    def readers(self) -> list[str]:
        """All entities of the ACL, in the order given."""
        return [entry.entity for entry in self.acl]

    def writers(self) -> list[str]:
        """The entities that may revise the item."""
        return [entry.entity for entry in self.acl if entry.permission == "read_write"]


class KnowledgePromoted(ItemFact):
    """A short memory became a semantic one: recalled often enough, which the node says, or confirmed by a reader.

    `through`: the actor of a confirmation reads the item through this.
    """

    name: ClassVar[str] = "knowledge.promoted"
    taken_in: ClassVar[tuple[ItemStatus, ...]] = ("active",)
    personal: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[Example] = Example(ITEM, USER, cause="confirmed", through="project:ledger")

    cause: PromotionCause
    through: Scope | None = None


class KnowledgeExpired(ItemFact):
    """A short memory was not recalled for `after` seconds, its lifetime, and leaves recall; the node says so."""

    name: ClassVar[str] = "knowledge.expired"
    makes: ClassVar[ItemStatus | None] = "expired"
    taken_in: ClassVar[tuple[ItemStatus, ...]] = ("active",)
    personal: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[Example] = Example(ITEM, "user:local", after=604_800)

    after: Lifetime


class KnowledgeApproved(ItemFact):
    """A coordinator of its projects takes a proposal into what these share, as the version says it that they read."""

    name: ClassVar[str] = "knowledge.approved"
    makes: ClassVar[ItemStatus | None] = "active"
    taken_in: ClassVar[tuple[ItemStatus, ...]] = ("proposed",)
    personal: ClassVar[tuple[str, ...]] = ("reason",)
    example: ClassVar[Example] = Example(ITEM, COORDINATOR, expected_version=1, reason="as we agreed on Monday")

    expected_version: Version
    reason: Reason | None = None


class KnowledgeRejected(ItemFact):
    """A coordinator of its projects declines a proposal; a revision proposes it anew."""

    name: ClassVar[str] = "knowledge.rejected"
    makes: ClassVar[ItemStatus | None] = "rejected"
    taken_in: ClassVar[tuple[ItemStatus, ...]] = ("proposed",)
    personal: ClassVar[tuple[str, ...]] = ("reason",)
    example: ClassVar[Example] = Example(ITEM, COORDINATOR, expected_version=1, reason="holds for one service only")

    expected_version: Version
    reason: Reason | None = None


class KnowledgeSuperseded(ItemFact):
    """Another item, a later version of the same fact, is in force; this one stays readable, with its history."""

    name: ClassVar[str] = "knowledge.superseded"
    makes: ClassVar[ItemStatus | None] = "superseded"
    taken_in: ClassVar[tuple[ItemStatus, ...]] = ("active", "proposed")
    personal: ClassVar[tuple[str, ...]] = ()
    example: ClassVar[Example] = Example(OTHER, COORDINATOR, by=ITEM)

    by: Id


FACTS: tuple[type[ItemFact], ...] = (
    KnowledgeSaved,
    KnowledgeRevised,
    KnowledgeRated,
    KnowledgeScored,
    KnowledgeRetired,
    KnowledgeRestored,
    KnowledgeShared,
    KnowledgeConfirmed,
    KnowledgeEvolved,
    KnowledgeReverted,
    KnowledgeAbsorbed,
    KnowledgeMerged,
    KnowledgeUnmerged,
    KnowledgePromoted,
    KnowledgeExpired,
    KnowledgeApproved,
    KnowledgeRejected,
    KnowledgeSuperseded,
)

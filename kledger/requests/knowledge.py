"""Request bodies of knowledge, goals and profiles, field by field; typos are refused."""

from __future__ import annotations

from typing import Annotated, Any, Self

from pydantic import AfterValidator, ConfigDict, Field, model_validator

from kledger.contract.bounds import (
    MOST_LISTED,
    Description,
    Document,
    ModelName,
    NewItemId,
    Priority,
    Reason,
    ResourceIds,
    Short,
    TypeWord,
)
from kledger.contract.knowledge import (
    MOST_SHARED,
    AclEntry,
    Case,
    Confidence,
    Count,
    Id,
    KnowledgeType,
    Scopes,
    Score,
    Source,
    Text,
    Types,
    Version,
    each_entity_once,
)
from kledger.contract.memory import Labels, Memory
from kledger.contract.recall import Match
from kledger.contract.scope_fields import SeenEntity
from kledger.contract.scopes import Visibility
from kledger.contract.words import BulkAction, Permission, Verdict
from kledger.requests.body import Asked
from kledger.requests.owners import Owner
from kledger.requests.resources import Together

MAX_BATCH = 1_000
MAX_FEEDBACK = 5_000


Entities = Annotated[list[SeenEntity], Field(max_length=MOST_SHARED)]


class SourceBody(Source):
    """`source` of an item."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class CaseBody(Case):
    """One use of an item: what for, with which outcome, why, when, in which trace."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class FirstCaseBody(CaseBody):
    """A case of an item's history, as an answer tells it: what the other ledger said of it is read over."""

    actor: Any = None
    credit: Any = None
    event_id: Any = None
    position: Any = None
    time: Any = None


MOST_FIRST_CASES = 200
"""Cases with which one item is imported: they are kept with it, whole or not at all."""
FirstCases = Annotated[list[FirstCaseBody], Field(max_length=MOST_FIRST_CASES)]


class EvalBody(Asked):
    """What an item begins with. An import takes the cases of its histories, which its counts include."""

    score: Score | None = None
    helpful: Count | None = None
    harmful: Count | None = None
    confidence: Confidence | None = None
    helpful_history: FirstCases = Field(default_factory=list)
    harmful_history: FirstCases = Field(default_factory=list)

    def history(self, verdict: Verdict) -> list[FirstCaseBody]:
        """The cases of one kind."""
        return self.helpful_history if verdict == "helpful" else self.harmful_history

    @model_validator(mode="after")
    def _few(self) -> Self:
        if len(self.helpful_history) + len(self.harmful_history) > MOST_FIRST_CASES:
            raise ValueError(f"has more than {MOST_FIRST_CASES} cases: import fewer, and rate the item with the others")
        return self


class MemoryBody(Memory):
    """What makes an item a memory: its layer, and the fields of that layer."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class AclEntryBody(AclEntry):
    """Somebody who may read an item beside those in its scopes."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    permission: Permission = "read"


Acl = Annotated[list[AclEntryBody], Field(max_length=MOST_SHARED), AfterValidator(each_entity_once)]


Referred = Annotated[str, Field(min_length=1)]


class Referring(Asked):
    """What may refer to resources, in each form: `resource_ids`, `resource_id`, `secure_resource_id`."""

    resource_ids: ResourceIds | None = None
    resource_id: Referred | None = None
    secure_resource_id: Referred | None = None

    def referred(self) -> list[str] | None:
        """All resources that are named, each once; None where none of the forms is stated."""
        if self.resource_id is None and self.secure_resource_id is None:
            return self.resource_ids
        single = [name for name in (self.resource_id, self.secure_resource_id) if name is not None]
        return list(dict.fromkeys([*(self.resource_ids or ()), *single]))

    @model_validator(mode="after")
    def _few(self) -> Self:
        if len(self.referred() or ()) > MOST_LISTED:
            raise ValueError(f"names more than {MOST_LISTED} resources: name fewer")
        return self


class SaveRequest(Referring):
    """A new item. `types` or a single `type`; the owner defaults to who asks, scopes to the owner.

    `content` says what is known, `task` in which situation, to do what. Types are words of your own, such as `tool` or
    `strategy`. `acl` names who else may read or revise it; `visibility` follows from scopes and ACL, and has to agree
    with them. `message_id`, `trace_id`, `created_at` and `updated_at` are of where the item is from: they are kept, and
    linked, beside what the source and the headers say; `created_at` is `source.timestamp` as well where that is absent.
    A `task` that is left out is the first sentence of the content.
    `resources` are saved with the item, which refers to them; each defaults to its owner and scopes. With `memory` it
    is a memory of a layer; `supersedes` names the item of which it is a later version.
    """

    id: NewItemId | None = None
    message_id: Short | None = None
    trace_id: Short | None = None
    type: KnowledgeType | None = None
    types: Types | None = None
    task: str | None = None
    content: Text
    tags: Document | None = None
    scopes: Scopes | None = None
    owner: Owner | None = None
    visibility: Visibility | None = None
    acl: Acl | None = None
    source: SourceBody | None = None
    score: Score | None = None
    eval: EvalBody | None = None
    created_at: Short | None = None
    updated_at: Short | None = None
    resources: Together = Field(default_factory=list)
    memory: MemoryBody | None = None
    supersedes: Id | None = None

    def referred(self) -> list[str] | None:
        """All resources that are named or saved with the item, each once."""
        named = super().referred()
        if not self.resources:
            return named
        return list(dict.fromkeys([*(named or ()), *(each.id for each in self.resources)]))

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if self.types is None and self.type is None:
            raise ValueError("states neither `types` nor `type`: name at least one kind of knowledge")
        if self.types is not None and self.type is not None and self.type not in self.types:
            raise ValueError(f"`type` {self.type!r} is not one of `types`: state one of the two")
        scored = None if self.eval is None else self.eval.score
        if None not in (self.score, scored) and self.score != scored:
            raise ValueError(f"`score` is {self.score} and `eval.score` is {scored}: state one of the two")
        return self

    def kinds(self) -> list[str]:
        """The kinds of knowledge, each once, in the order given."""
        return list(dict.fromkeys(self.types or [self.type or ""]))


class SaveManyRequest(Asked):
    """Up to 1,000 payloads of POST /api/knowledge; each is judged on its own."""

    items: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MAX_BATCH)]


class UpdateRequest(Referring):
    """Feedback on an item, and for its owner the fields to state anew.

    Where the `task` is the first sentence of the content, it is made anew with a new `content` that states none.
    `tags` are an object, or words, each of which is a tag without a value.
    """

    add_helpful_case: CaseBody | None = None
    add_harmful_case: CaseBody | None = None
    update_score: Score | None = None
    evolve_feedback: Text | None = None
    evolve_dry_run: bool = False
    evolve_model: ModelName | None = None
    types: Types | None = None
    task: str | None = None
    content: Text | None = None
    tags: Document | Labels | None = None
    scopes: Scopes | None = None
    owner: Owner | None = None
    source: SourceBody | None = None
    expected_version: Version | None = None
    reason: Reason | None = None

    @model_validator(mode="after")
    def _evolves(self) -> Self:
        if self.evolve_feedback is None and (self.evolve_dry_run or self.evolve_model is not None):
            raise ValueError("`evolve_dry_run` and `evolve_model` go with `evolve_feedback`: say what is to be better")
        return self


class ShareRequest(Asked):
    """The whole ACL of an item; an empty one leaves it to its scopes."""

    acl: Acl
    expected_version: Version | None = None


def _each_once(ids: list[str]) -> list[str]:
    if len(set(ids)) < len(ids):
        raise ValueError("names an item twice: name each once")
    return ids


class BulkRequest(Asked):
    """What is to be done to many items; a dry run, the default, only says what would become of each.

    `readers` and `writers` belong to `share`: they are added to what the ACL of each item has. A `reason` belongs to
    the others.
    """

    action: BulkAction
    ids: Annotated[list[Id], Field(min_length=1, max_length=MAX_BATCH), AfterValidator(_each_once)]
    dry_run: bool = True
    reason: Reason | None = None
    readers: Entities = Field(default_factory=list)
    writers: Entities = Field(default_factory=list)

    def added(self) -> list[AclEntry]:
        """The entries that sharing adds to the ACL of each item; who is named as both may write."""
        reading = [entity for entity in self.readers if entity not in self.writers]
        return [
            *(AclEntry(entity=entity, permission="read_write") for entity in dict.fromkeys(self.writers)),
            *(AclEntry(entity=entity, permission="read") for entity in dict.fromkeys(reading)),
        ]

    @model_validator(mode="after")
    def _fits_its_action(self) -> Self:
        if self.action == "share" and not (self.readers or self.writers):
            raise ValueError("shares with nobody: name `readers` or `writers`")
        if self.action == "share" and self.reason is not None:
            raise ValueError("states a `reason`, which sharing has none of: leave it out")
        if self.action != "share" and (self.readers or self.writers):
            raise ValueError(f"names readers or writers, and is to {self.action}: they belong to `share`")
        return self


class RevertBulkRequest(Asked):
    """Undo what a bulk did, with a reason where it is to be kept with the events."""

    reason: Reason | None = None


class ScopeTypeRequest(Asked):
    """A type of scope, and its place among user 6, project 5, agent 4, team 3, org 2, public 1."""

    type: TypeWord
    priority: Priority


class FeedbackBody(Asked):
    """One verdict of a batch."""

    knowledge_id: Id
    is_helpful: bool
    case: CaseBody | None = None


class FeedbackRequest(Asked):
    """Up to 5,000 verdicts; each is judged on its own."""

    feedback_list: Annotated[list[dict[str, Any]], Field(min_length=1, max_length=MAX_FEEDBACK)]


class ContentRequest(Asked):
    """The content of a memory, whole (PUT) or as a JSON merge patch (PATCH)."""

    content: Document


class FocusRequest(Asked):
    """What a goal is about, and how much knowledge to inject."""

    description: Description
    top_k: Annotated[int, Field(ge=1, le=100)] = 3
    min_score: Annotated[int, Field(ge=0, le=5)] = 3
    min_match: Match | None = None

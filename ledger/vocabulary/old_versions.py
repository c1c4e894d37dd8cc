"""Models of old event versions, kept to describe them in the generated schemas.

Nothing writes these versions any more, and reading goes through `ledger/wire/upcasts.py`. The schemas let an old
client be checked against what it publishes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from kledger.contract.bounds import Document, ModelName, Reason, ResourceIds
from kledger.contract.knowledge import (
    Case,
    Confidence,
    Count,
    KnowledgeType,
    Scopes,
    Score,
    Source,
    Text,
    Types,
    Version,
)
from kledger.contract.resource import ContentType, Metadata, SharedWith
from kledger.contract.scopes import Entity, Visibility
from kledger.contract.words import ExtractionKind
from ledger.event import Fact
from ledger.events.knowledge import Origin
from ledger.events.process import ProcessFact
from ledger.events.resource import SEALED_PATTERN, ResourceFact


class EarlierEval(BaseModel):
    """The counts an item came with; the histories beside them were never kept here and are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    score: Score = 3
    helpful: Count = 1
    harmful: Count = 0
    confidence: Confidence = 0.5


class KnowledgeSaved1(Fact):
    """A new item in its first form: a single `type`, the counts under `eval`, the visibility stated."""

    name: ClassVar[str] = "knowledge.saved"

    type: KnowledgeType
    task: str
    content: Text
    tags: Document = Field(default_factory=dict)
    scopes: Scopes
    owner: Entity
    resource_ids: ResourceIds = Field(default_factory=list)
    visibility: Visibility | None = None
    source: Source = Source()
    eval: EarlierEval | None = None


class KnowledgeSaved2(Fact):
    """A new item; it says nowhere but in its source where it is from."""

    name: ClassVar[str] = "knowledge.saved"
    version: ClassVar[int] = 2

    types: Types
    task: str
    content: Text
    tags: Document = Field(default_factory=dict)
    scopes: Scopes
    owner: Entity
    resource_ids: ResourceIds = Field(default_factory=list)
    source: Source = Source()
    score: Score = 3
    helpful: Count = 1
    harmful: Count = 0
    confidence: Confidence = 0.5


class KnowledgeSaved3(Fact):
    """A new item, which says where it is from; it is no memory."""

    name: ClassVar[str] = "knowledge.saved"
    version: ClassVar[int] = 3
    added: ClassVar[tuple[str, ...]] = ("origin",)

    types: Types
    task: str
    content: Text
    tags: Document = Field(default_factory=dict)
    scopes: Scopes
    owner: Entity
    resource_ids: ResourceIds = Field(default_factory=list)
    source: Source = Source()
    score: Score = 3
    helpful: Count = 1
    harmful: Count = 0
    confidence: Confidence = 0.5
    origin: Origin | None = None


class KnowledgeRated1(Fact):
    """The item helped or harmed, with the case that shows it; it does not say through what its actor reads the item."""

    name: ClassVar[str] = "knowledge.rated"

    verdict: Literal["helpful", "harmful"]
    case: Case = Case()


class KnowledgeScored1(Fact):
    """A new score, 1 (poor) to 5; it does not say through what its actor reads the item."""

    name: ClassVar[str] = "knowledge.scored"

    score: Score
    reason: Reason | None = None


class KnowledgeConfirmed1(Fact):
    """The item was said again; it does not say through what its actor reads the item."""

    name: ClassVar[str] = "knowledge.confirmed"

    case: Case = Case()


class ResourceSaved1(ResourceFact):
    """The owner states the whole resource; it does not say where it is from."""

    model_config = ConfigDict(hide_input_in_errors=True)

    name: ClassVar[str] = "resource.saved"

    title: Text
    body: str = ""
    secure_body: Annotated[str, Field(pattern=SEALED_PATTERN)] | None = None
    content_type: ContentType = "text"
    metadata: Metadata = Field(default_factory=dict)
    scopes: Scopes
    owner: Entity
    shared_with: SharedWith = Field(default_factory=list)
    expected_version: Version | None = None


class ExtractionRequested1(ProcessFact):
    """Knowledge is to be drawn from messages; it does not say which agent has it drawn."""

    name: ClassVar[str] = "extraction.requested"

    kind: ExtractionKind
    messages: Annotated[list[Document], Field(min_length=1, max_length=1_000)]
    owner: Entity
    scopes: Scopes
    model: ModelName | None = None


_FORMS: tuple[type[Fact], ...] = (
    *(KnowledgeSaved1, KnowledgeSaved2, KnowledgeSaved3, KnowledgeRated1, KnowledgeScored1, KnowledgeConfirmed1),
    *(ResourceSaved1, ExtractionRequested1),
)
EARLIER: Mapping[tuple[str, int], type[Fact]] = {(form.name, form.version): form for form in _FORMS}

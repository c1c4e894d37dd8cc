"""What did the events of earlier versions look like? Their forms are kept so that they can be described.

Nothing writes these any more. Reading goes through `ledger/upcasts.py`, one step a version; these models are
for the generated schemas, so that a client of that time can still be checked against what it publishes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, Field

from ledger.event import Fact, JsonObject
from ledger.events.knowledge import Confidence, Count, KnowledgeType, Scopes, Score, Source, Text
from ledger.scopes import Entity, Visibility


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
    tags: JsonObject = Field(default_factory=dict)
    scopes: Scopes
    owner: Entity
    resource_ids: list[str] = Field(default_factory=list)
    visibility: Visibility | None = None
    source: Source = Source()
    eval: EarlierEval | None = None


EARLIER: Mapping[tuple[str, int], type[Fact]] = {(form.name, form.version): form for form in (KnowledgeSaved1,)}

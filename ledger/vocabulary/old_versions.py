"""Models of old event versions, kept to describe them in the generated schemas.

Nothing writes these versions any more, and reading goes through `ledger/wire/upcasts.py`. The schemas let an old
client be checked against what it publishes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field, create_model

from kledger.contract.bounds import Document, ResourceIds
from kledger.contract.knowledge import Confidence, Count, KnowledgeType, Scopes, Score, Source, Text
from kledger.contract.part import Part
from kledger.contract.scope_fields import Entity
from kledger.contract.scopes import Visibility
from ledger.event import Fact
from ledger.events.extraction import ExtractionRequested
from ledger.events.knowledge import (
    KnowledgeConfirmed,
    KnowledgeRated,
    KnowledgeRestored,
    KnowledgeRetired,
    KnowledgeSaved,
    KnowledgeScored,
    KnowledgeShared,
)
from ledger.events.recall import RecallServed
from ledger.events.resource import ResourceSaved


class EarlierEval(Part):
    """The counts an item came with; the histories beside them were never kept here and are ignored."""

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


def _earlier(fact: type[Fact], about: str, version: int = 1) -> type[Fact]:
    """An earlier version of an event; each later one has one field more, the next of `Fact.added`."""
    lacking = fact.added[version - fact.version :]
    fields: dict[str, Any] = {
        name: (info.annotation, info) for name, info in fact.model_fields.items() if name not in lacking
    }
    form: type[Fact] = create_model(f"{fact.__name__}{version}", __base__=fact.__bases__[0], __doc__=about, **fields)
    form.name, form.version, form.added = fact.name, version, fact.added[: version - fact.version]
    return form


_THROUGH = "it does not say through what its actor reads the item."
_BULK = "it does not say of which bulk it is a part."
_FORMS: tuple[type[Fact], ...] = (
    KnowledgeSaved1,
    _earlier(KnowledgeSaved, "A new item; it says nowhere but in its source where it is from.", 2),
    _earlier(KnowledgeSaved, "A new item, which says where it is from; it is no memory.", 3),
    _earlier(KnowledgeSaved, "A new item or memory; it does not say of which item it is a later version.", 4),
    _earlier(KnowledgeRated, f"The item helped or harmed, with the case that shows it; {_THROUGH}"),
    _earlier(KnowledgeScored, f"A new score, 1 (poor) to 5; {_THROUGH}"),
    _earlier(KnowledgeConfirmed, f"The item was said again; {_THROUGH}"),
    _earlier(KnowledgeRetired, f"The owner, or a coordinator, takes the item out of recall; {_BULK}"),
    _earlier(KnowledgeRestored, f"The owner, or a coordinator, brings the item back; {_BULK}"),
    _earlier(KnowledgeShared, f"The owner states the whole ACL of the item anew; {_BULK}"),
    _earlier(ResourceSaved, "The owner states the whole resource; it does not say where it is from."),
    _earlier(RecallServed, "Items were handed out, best first; it does not say how they were ranked."),
    _earlier(ExtractionRequested, "Knowledge is to be drawn from messages; it does not say which agent has it drawn."),
)
EARLIER: Mapping[tuple[str, int], type[Fact]] = {(form.name, form.version): form for form in _FORMS}

"""Events of a document: ingested, removed.

The entity id is the document's, which is written like a path: `handbook/install.md`. Only the owner publishes these.
What a document says is in items, one for each chunk; the event says which items they are, and in which order.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Self

from pydantic import Field, model_validator

from kledger.contract.bounds import Reason, ResourceIds
from kledger.contract.documents import (
    MOST_CHUNKS,
    MOST_SECTIONS,
    Heading,
    Level,
    MediaType,
    Ordinal,
    Summary,
    Title,
    Url,
    fault_of_id,
    original_id,
)
from kledger.contract.knowledge import Count, Id, Scopes
from kledger.contract.scope_fields import SeenEntity
from ledger.event import Example, Fact
from ledger.events.examples import AUTHOR, DOCUMENT, ITEM, OTHER


class DocumentFact(Fact):
    """Base class of events about a document, whose id is written like a path."""

    @classmethod
    def fault_of_id(cls, entity_id: str) -> str | None:
        return fault_of_id(entity_id)


class DocumentIngested(DocumentFact):
    """The owner states the whole document: the first time a new one, later its next version.

    `chunks` are the items that say what it says, in its order; `digests` has one digest for each, of the text that the
    document has there, separated by blanks. Section `i` has the heading `headings[i]` (empty: what stands before the
    first one) at `levels[i]`, and begins with the chunk number `starts[i]`.
    """

    name: ClassVar[str] = "document.ingested"
    personal: ClassVar[tuple[str, ...]] = ("title", "url", "summary", "headings", "summaries", "digests")
    example: ClassVar[Example] = Example(
        DOCUMENT,
        AUTHOR,
        title="Setting up",
        content_type="text/markdown",
        url="https://example.com/setup",
        summary="How to start the database and run the tests.",
        headings=["Setting up", "The database"],
        levels=[1, 2],
        starts=[0, 1],
        summaries=["Two steps.", "`make db` starts it."],
        chunks=[ITEM, OTHER],
        digests="9f86d081884c7d65 60303ae22b998861",
        characters=1_250,
        resource_ids=[original_id(DOCUMENT)],
        scopes=["project:ledger", AUTHOR],
        owner=AUTHOR,
    )

    title: Title
    content_type: MediaType
    url: Url | None = None
    summary: Summary = ""
    headings: Annotated[list[Heading], Field(min_length=1, max_length=MOST_SECTIONS)]
    levels: Annotated[list[Level], Field(max_length=MOST_SECTIONS)]
    starts: Annotated[list[Ordinal], Field(max_length=MOST_SECTIONS)]
    summaries: Annotated[list[Heading], Field(max_length=MOST_SECTIONS)]
    chunks: Annotated[list[Id], Field(min_length=1, max_length=MOST_CHUNKS)]
    digests: Annotated[str, Field(max_length=64 * MOST_CHUNKS)]
    characters: Count
    resource_ids: ResourceIds = Field(default_factory=list)
    scopes: Scopes
    owner: SeenEntity

    @model_validator(mode="after")
    def _check_sections(self) -> Self:
        if not len(self.headings) == len(self.levels) == len(self.starts) == len(self.summaries):
            raise ValueError("headings, levels, starts and summaries have one entry for each section")
        if self.starts[0] != 0 or sorted(self.starts) != self.starts or self.starts[-1] > len(self.chunks):
            raise ValueError("starts are numbers of chunks: the first is 0, and none is less than the one before")
        if len(set(self.chunks)) < len(self.chunks):
            raise ValueError("chunks names an item twice")
        return self


class DocumentRemoved(DocumentFact):
    """The owner removes the document: no list has it any more, and its chunks are retired; its history stays."""

    name: ClassVar[str] = "document.removed"
    personal: ClassVar[tuple[str, ...]] = ("reason",)
    example: ClassVar[Example] = Example(DOCUMENT, AUTHOR, reason="we use another database now")

    reason: Reason | None = None


FACTS: tuple[type[Fact], ...] = (DocumentIngested, DocumentRemoved)

"""Answers about documents: what ingesting appended, lists, and one with its sections and chunks."""

from __future__ import annotations

from typing import Annotated, NotRequired

from pydantic import Field
from typing_extensions import TypedDict

from kledger.answers.parts import Answered, Count, KeptAt, NextOffset, Position, Time, Total
from kledger.contract.scopes import Visibility
from kledger.contract.words import DocumentStatus, ItemStatus, SummaryBy


class IngestedDocument(TypedDict):
    """A document, acknowledged at a position, and how many of its chunks are new, as before, and retired."""

    id: str
    title: str
    position: KeptAt
    version: int
    event_id: str
    duplicate: Annotated[bool, Field(description="It says what it said before: no version is new")]
    sections: int
    saved: Annotated[int, Field(description="Chunks that are new")]
    held: Annotated[int, Field(description="Chunks that say what a person had retired or corrected: they are held")]
    unchanged: Annotated[int, Field(description="Chunks that are the same as before")]
    retired: Annotated[int, Field(description="Chunks that it says no longer")]


class ListedDocument(TypedDict):
    """A document as lists give it."""

    id: str
    title: str
    content_type: str
    url: str | None
    summary: str
    summary_by: Annotated[SummaryBy, Field(description="Sentences of the document, or what a model said of it")]
    characters: int
    resource_ids: list[str]
    scopes: list[str]
    owner: str
    visibility: Visibility
    version: int
    position: int
    created_at: Time
    updated_at: Time
    status: DocumentStatus


class DocumentSection(TypedDict):
    """A section: its heading (empty before the first one), its level, its summary, and who made that."""

    heading: str
    level: int
    summary: str
    summary_by: SummaryBy


class DocumentChunk(TypedDict):
    """A chunk: the item that says it, and the number of its section, from 0."""

    id: str
    section: int
    content: str
    status: ItemStatus


class Document(ListedDocument, Answered):
    """One document with its sections, and a page of those of its chunks that the caller reads, in its order."""

    sections: list[DocumentSection]
    chunks: list[DocumentChunk]
    count: Count
    total: Total
    next: NotRequired[NextOffset]


class DocumentList(Answered):
    """A page of documents, as of items."""

    results: list[ListedDocument]
    count: Count
    total: Total
    next: int | None
    position: Position


class ItemPart(TypedDict):
    """Where a chunk stands: its document, the headings above it, and the chunks before and after it."""

    document: str
    title: str
    headings: list[str]
    before: str | None
    after: str | None

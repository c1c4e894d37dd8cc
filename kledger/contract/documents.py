"""Limits and value types of documents, shared by requests and events."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kledger.contract.resource import fault_of_id as fault_of_resource_id

MOST_FILE = 10 * 1024 * 1024
"""Bytes of a file, or of a text in UTF-8."""
MOST_CHARACTERS = 1_000_000
"""Characters of a document's text."""
MOST_CHUNKS = 950
"""Chunks of a document: the event of a document and the end of all its chunks before fit one atomic batch of 1,000."""
MOST_SECTIONS = 300
MOST_HEADING = 200
"""Characters of a heading, and of the summary of a section."""
MOST_SUMMARY = 1_000
"""Characters of the summary of a document."""
DEEPEST_LEVEL = 6
LONGEST_ID = 150
"""Characters of an id: that of the resource with the original, which begins with it, is longer."""
ITEM_TYPE = "document"
"""The type of the items that are chunks of documents."""
CHUNK = "chunk-"
"""The beginning of the id of a chunk."""


def fault_of_id(document_id: str) -> str | None:
    """The fault of a document's id, which is written like a path; None when it is valid."""
    if len(document_id) > LONGEST_ID:
        return f"has {len(document_id)} characters, 1 to {LONGEST_ID} are allowed"
    return fault_of_resource_id(document_id)


def original_id(document_id: str, number: int = 1) -> str:
    """The id of the resource that keeps the original of a document; a large one continues in further ones."""
    return f"documents/{document_id}/original" + ("" if number == 1 else f"/{number}")


Title = Annotated[str, Field(min_length=1, max_length=MOST_HEADING)]
Heading = Annotated[str, Field(max_length=MOST_HEADING)]
Summary = Annotated[str, Field(max_length=MOST_SUMMARY)]
Url = Annotated[str, Field(min_length=1, max_length=2_000)]
MediaType = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.+-]{0,63}/[a-z0-9][a-z0-9_.+-]{0,127}$")]
Level = Annotated[int, Field(ge=1, le=DEEPEST_LEVEL)]
Ordinal = Annotated[int, Field(ge=0, le=MOST_CHUNKS)]

TEXT, MARKDOWN, HTML, PDF = "text/plain", "text/markdown", "text/html", "application/pdf"
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
MEDIA_TYPES = {"text": TEXT, "markdown": MARKDOWN, "html": HTML, "pdf": PDF, "word": WORD}
"""What is read, by the short name of each."""
ENDINGS = {
    **{".txt": TEXT, ".text": TEXT, ".md": MARKDOWN, ".markdown": MARKDOWN},
    **{".html": HTML, ".htm": HTML, ".xhtml": HTML, ".pdf": PDF, ".docx": WORD},
}
"""Which of them a file is, by the end of its name."""

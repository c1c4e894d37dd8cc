"""Reading one file of a type: what it says, as a document of JSON, or why it cannot be read."""

from __future__ import annotations

import importlib

from kledger.contract.documents import HTML, MARKDOWN, PDF, TEXT, WORD
from producers.documents.blocks import Unreadable
from producers.documents.sections import sections_of
from producers.documents.summaries import summaries

_READERS = {TEXT: "plain", MARKDOWN: "markdown", HTML: "html", PDF: "pdf", WORD: "word"}


def read_one(content_type: str, content: bytes) -> dict[str, object]:
    """What the file says, or its `error`. Raises MemoryError."""
    try:
        return _read(content_type, content)
    except Unreadable as error:
        return {"error": str(error)}
    except RecursionError:
        return {"error": "it is nested too deep"}


def _read(content_type: str, content: bytes) -> dict[str, object]:
    reader = importlib.import_module(f"producers.documents.{_READERS[content_type]}")
    told = reader.read(content)
    sections = sections_of(told.blocks)
    summary, of_sections = summaries([section.chunks for section in sections])
    title = told.title or next((section.heading for section in sections if section.heading), None)
    return {
        "title": title,
        "summary": summary,
        "characters": sum(len(block.text) for block in told.blocks),
        "sections": [
            {"heading": each.heading, "level": each.level, "summary": said, "chunks": each.chunks}
            for each, said in zip(sections, of_sections, strict=True)
        ],
    }

"""PDF: the text of its pages, with the bookmarks of its outline as headings."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pypdf import PdfReader
from pypdf.errors import PyPdfError

from kledger.contract.documents import MOST_CHARACTERS
from producers.documents.blocks import Read, Unreadable

MOST_PAGES = 2_000
_MOST_BOOKMARKS = 5_000
_ENDS = re.compile(r"[.!?:;。！？：；]['\")\]”’」』]?$")


def read(content: bytes) -> Read:
    """Pages without text (scans) say nothing. Raises Unreadable."""
    try:
        return _read(PdfReader(io.BytesIO(content), strict=False))
    except (PyPdfError, ValueError, KeyError, TypeError, AttributeError, IndexError, OSError) as error:
        raise Unreadable(f"it is no PDF that can be read ({type(error).__name__}): it may be cut or broken") from error


def _read(pdf: PdfReader) -> Read:
    told = Read()
    if pdf.is_encrypted and not pdf.decrypt(""):
        raise Unreadable("it is a PDF with a password: save it without one")
    if (pages := pdf.get_num_pages()) > MOST_PAGES:
        raise Unreadable(f"it has {pages:,} pages, {MOST_PAGES:,} are read of one PDF: split it")
    if pdf.metadata is not None and isinstance(pdf.metadata.title, str):
        told.title = pdf.metadata.title.strip() or None
    headings: dict[int, list[tuple[int, str]]] = {}
    for level, title, at in _bookmarks(pdf, pdf.outline, 1):
        headings.setdefault(at, []).append((level, title))
    characters = 0
    for number, page in enumerate(pdf.pages):
        if number >= MOST_PAGES:
            raise Unreadable(f"it has more than {MOST_PAGES:,} pages: split it")
        text = page.extract_text()
        characters += len(text)
        if characters > MOST_CHARACTERS:
            raise Unreadable(f"it has more than {MOST_CHARACTERS:,} characters: split it")
        _add_page(told, text, headings.get(number, []))
    return told


def _bookmarks(pdf: PdfReader, outline: Sequence[Any], level: int) -> Iterator[tuple[int, str, int]]:
    """(level, title, page) of each bookmark."""
    for each in outline[:_MOST_BOOKMARKS]:
        if isinstance(each, list):
            yield from _bookmarks(pdf, each, level + 1)
        elif each.title and (page := pdf.get_destination_page_number(each)) is not None:
            yield min(level, 6), " ".join(str(each.title).split()), page


def _add_page(told: Read, text: str, headings: list[tuple[int, str]]) -> None:
    """The lines of a page as paragraphs; a bookmark stands before the line that says it, else before the page."""
    lines = [line.strip() for line in text.split("\n")]
    places: dict[int, list[tuple[int, str]]] = {}
    for level, title in headings:
        at = next((number for number, line in enumerate(lines) if _same(line, title)), None)
        if at is not None:
            lines[at] = ""
        places.setdefault(0 if at is None else at, []).append((level, title))
    paragraph: list[str] = []
    for number, line in enumerate([*lines, ""]):
        if not line or number in places:
            told.add(0, " ".join(paragraph))
            paragraph.clear()
            for level, title in places.get(number, ()):
                told.add(level, title)
        if line:
            paragraph.append(line)
            if _ENDS.search(line):
                told.add(0, " ".join(paragraph))
                paragraph.clear()


def _same(line: str, title: str) -> bool:
    return "".join(line.split()).casefold() == "".join(title.split()).casefold()

"""Sections and chunks: what a file says, in parts that a search can find and a model can read.

A chunk is some paragraphs of one section. Where it ends follows from what its last paragraph says, not from how many
came before: after a change, the chunks behind it are soon the same as before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from zlib import crc32

from kledger.contract.bounds import is_blank
from kledger.contract.documents import MOST_CHARACTERS, MOST_CHUNKS, MOST_HEADING, MOST_SECTIONS
from producers.documents.blocks import Block, Unreadable

LEAST, MOST = 800, 2_000
"""Bytes of a chunk in UTF-8: those of about 130 and 330 words, or 270 and 670 Chinese characters."""
_ONE_IN = 3
"""A chunk that is long enough ends with about every third paragraph."""
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|(?<=[。！？；])|\n+")


@dataclass(slots=True)
class Section:
    """A heading and what stands below it, up to the next heading of any level."""

    heading: str
    level: int
    chunks: list[str] = field(default_factory=list)


def sections_of(blocks: Sequence[Block]) -> list[Section]:
    """The sections; the first has no heading where the text begins without one. Raises Unreadable."""
    if sum(len(block.text) for block in blocks) > MOST_CHARACTERS:
        raise Unreadable(f"it has more than {MOST_CHARACTERS:,} characters: split it")
    parts: list[tuple[Section, list[str]]] = []
    for level, text in _with_few_headings(blocks):
        if level:
            parts.append((Section(" ".join(text.split())[:MOST_HEADING], level), []))
        else:
            if not parts:
                parts.append((Section("", 1), []))
            parts[-1][1].append(text)
    for section, paragraphs in parts:
        section.chunks = list(_chunks(paragraphs))
    found = sum(len(section.chunks) for section, _ in parts)
    if not found:
        raise Unreadable("it holds no text: a scan has to be read by a program for that first")
    if found > MOST_CHUNKS:
        raise Unreadable(f"it makes {found:,} chunks, {MOST_CHUNKS:,} are kept of one document: split it")
    return [section for section, _ in parts]


def _with_few_headings(blocks: Sequence[Block]) -> Sequence[Block]:
    """The blocks with MOST_SECTIONS headings at most: the deepest levels become paragraphs."""
    while sum(block.level > 0 for block in blocks) >= MOST_SECTIONS:
        deepest = max(block.level for block in blocks)
        if deepest == 1:
            raise Unreadable(f"it has more than {MOST_SECTIONS} main sections: split it")
        blocks = [Block(0, block.text) if block.level == deepest else block for block in blocks]
    return blocks


def _chunks(paragraphs: Sequence[str]) -> Iterator[str]:
    chunk: list[str] = []
    size = 0
    for paragraph in paragraphs:
        for piece, whole in _pieces(paragraph):
            if is_blank(piece):
                continue
            length = _bytes(piece)
            if chunk and size + length > MOST:
                yield "\n\n".join(chunk)
                chunk, size = [], 0
            chunk.append(piece)
            size += length
            if whole and size >= LEAST and crc32(piece.encode()) % _ONE_IN == 0:
                yield "\n\n".join(chunk)
                chunk, size = [], 0
    if chunk:
        yield "\n\n".join(chunk)


def _pieces(paragraph: str) -> Iterator[tuple[str, bool]]:
    """A paragraph; where it is too long for a chunk, its lines and sentences, joined up to that size."""
    if _bytes(paragraph) <= MOST:
        yield paragraph, True
        return
    held, start = "", 0
    for end in [*(match.end() for match in _SENTENCE.finditer(paragraph)), len(paragraph)]:
        sentence, start = paragraph[start:end], end
        if held and _bytes(held) + _bytes(sentence) > MOST:
            yield held.strip(), False
            held = ""
        while _bytes(sentence) > MOST:
            cut = len(sentence.encode()[:MOST].decode(errors="ignore"))
            yield sentence[:cut], False
            sentence = sentence[cut:]
        held += sentence
    if held.strip():
        yield held.strip(), True


def _bytes(text: str) -> int:
    return len(text.encode())

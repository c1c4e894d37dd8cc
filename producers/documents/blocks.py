"""Blocks: what every reader of a format makes of a file; and the errors with which reading ends."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Unreadable(Exception):
    """The file cannot be read; the text says why, without what it holds."""


class Block(NamedTuple):
    """A heading (`level` 1 to 6), or a paragraph (0)."""

    level: int
    text: str


@dataclass(slots=True)
class Read:
    """What a file says, in its order."""

    blocks: list[Block] = field(default_factory=list)
    title: str | None = None
    """As the file states it, beside its headings."""

    def add(self, level: int, text: str) -> None:
        """Append a block, without blanks around it; nothing for an empty one."""
        if text := text.strip():
            self.blocks.append(Block(level, text))


def decoded(content: bytes, stated: str | None = None) -> str:
    """The text of a file: UTF-8, or UTF-16 with its mark, or the encoding that the file states. Raises Unreadable."""
    marked = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    for encoding in (marked, stated):
        if encoding is None:
            continue
        try:
            return content.decode(encoding).replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
        except (UnicodeDecodeError, LookupError):
            continue
    raise Unreadable("it is not text in UTF-8: save it as UTF-8, or say its content_type")

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


_MEANT = {
    **dict.fromkeys(("gb2312", "gb_2312-80", "gbk", "cp936"), "gb18030"),
    **dict.fromkeys(("big5", "big5-hkscs"), "big5hkscs"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis"), "cp932"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987"), "cp949"),
    **dict.fromkeys(("iso-8859-1", "latin1", "us-ascii", "ascii"), "cp1252"),
}
"""Encodings that files state, and the wider ones in which they are written, as browsers read them (WHATWG)."""


def decoded(content: bytes, stated: str | None = None) -> str:
    """The text of a file: UTF-8, or UTF-16 with its mark, or the encoding that the file states. Raises Unreadable.

    An encoding that is stated is read as the wider one that is meant by it, where the text fits that one.
    """
    meant = None if stated is None else _MEANT.get(stated.lower())
    marked = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    for encoding in (marked, meant, stated):
        if encoding is None:
            continue
        try:
            return content.decode(encoding).replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
        except (UnicodeDecodeError, LookupError):
            continue
    raise Unreadable("it is not text in UTF-8: save it as UTF-8, for example with iconv -f GB18030 -t UTF-8")

"""A statement without what changes its looks alone: bullets, numbering, simple tags, invisible characters, blanks, and
separators in numbers.

For tombstones (tombstones.py). Near-duplicates are measured on texts as they stand, so that no group of slim moves.
"""

from __future__ import annotations

import html
import re

_HAN = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
    "\U000e0000-\U000e007f\U000e0100-\U000e01ef]"
)
"""Soft hyphens, joiners, zero-width blanks, marks of direction, variation selectors and tags."""
_INLINE = re.compile(r"</?(?:b|i|u|s|em|strong|span|font|mark|small|big|sub|sup)(?:\s[^<>]{0,200})?/?>", re.IGNORECASE)
_BLOCK = re.compile(r"</?(?:p|br|div|li|ul|ol|h[1-6]|hr|blockquote)(?:\s[^<>]{0,200})?/?>", re.IGNORECASE)
_BULLET = re.compile(
    r"^(?:[^\S\n]*(?:(?:[-*+•‣◦▪·–—>]|#{1,6}|[(（]?(?:\d{1,3}|[a-zA-Z])[.)．）])[^\S\n]+|\d{1,3}、|[①-⑳])){1,3}",
    re.MULTILINE,
)
_NUMBER = re.compile(r"\s*[(（]?(\d{1,3}|[a-zA-Z])[.)．）]\s|\s*(\d{1,3})、|\s*([①-⑳])")
"""The bullets of _BULLET that may say something: 12. March, and a. for the first team."""
_BETWEEN_HAN = re.compile(f"(?<=[{_HAN}])[^\\S\\n]+(?=[{_HAN}])")
_GROUPED = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?![\d,])")
"""A number with its thousands apart: 12,500."""
_THOUSANDS = re.compile(r",\d{3}")
"""What each of these has, found in a fortieth of the time."""
_BLANK = re.compile(r"\s")
_FEWEST = 3
"""So many underscores, and more than blanks, stand for blanks; fewer are part of a name."""


def undisguised(text: str) -> str:
    """The text in its plain looks. What only looks otherwise is equal then; what says something else is not.

    A number at its beginning goes like any bullet; whoever compares two texts looks at both (`number_of`).

    A pattern is looked for only where a text has what all of its matches have: recalls ask this of each result.
    """
    if "<" in text:
        text = _BLOCK.sub("\n", _INLINE.sub("", text))
    text = html.unescape(text)
    if not text.isascii():
        text = _INVISIBLE.sub("", text)
    if "\n" in text:
        text = _BULLET.sub("", text)
    elif bullet := _BULLET.match(text):
        text = text[bullet.end() :]
    if _THOUSANDS.search(text):
        text = _GROUPED.sub(lambda number: number[0].replace(",", ""), text)
    if (marks := text.count("_")) >= _FEWEST and marks > len(_BLANK.findall(text)):
        text = text.replace("_", " ")
    return text if text.isascii() else _BETWEEN_HAN.sub("", text)


def number_of(text: str) -> str | None:
    """The number or letter that a text begins with as if it were a bullet; None where there is none.

    Texts with different ones say different things: 12. March is another day than 13. March.
    """
    number = _NUMBER.match(text)
    return None if number is None else next(filter(None, number.groups()))

"""Plain text: paragraphs, which blank lines part."""

from __future__ import annotations

import re

from producers.documents.blocks import Read, decoded

_BLANK = re.compile(r"\n[ \t]*\n+")


def read(content: bytes) -> Read:
    """Plain text has no headings."""
    told = Read()
    for paragraph in _BLANK.split(decoded(content)):
        told.add(0, paragraph)
    return told

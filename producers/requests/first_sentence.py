"""The task of a text where none is stated: its first sentence, in any language."""

from __future__ import annotations

import re

LONGEST = 100
"""Characters of a task that a model which routes is told; a longer sentence is cut there."""
_END = re.compile(r"[。！？!?\n]|\.(?=\s|$)")


def first_sentence(text: str) -> str:
    """The first sentence of a text, without the full stop behind it."""
    said = text.strip()
    end = _END.search(said)
    sentence = said if end is None else said[: end.start()] + (end[0] if end[0] in "！？!?" else "")
    says = sentence if any(letter.isalnum() for letter in sentence) else said
    return says.strip()[:LONGEST].rstrip()

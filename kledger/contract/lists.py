"""Lists of words in one text, as filters take them: `a,b`.

A backslash makes the comma or the backslash after it a part of the word: `x\\,y` is one word.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_WORD = re.compile(r"(?:\\[,\\]|[^,])+")
_ESCAPED = re.compile(r"\\([,\\])")
_TO_ESCAPE = re.compile(r"([,\\])")


def split_words(text: str) -> list[str]:
    """The words of a text, without blanks around them, each once; empty ones are left out."""
    words = (_ESCAPED.sub(r"\1", word).strip() for word in _WORD.findall(text))
    return list(dict.fromkeys(word for word in words if word))


def join_words(words: Sequence[str]) -> str:
    """The text whose words these are."""
    return ",".join(_TO_ESCAPE.sub(r"\\\1", word) for word in words)

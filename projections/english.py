"""Stems of English words. The library, which brings those of thirty languages, is loaded with the first word."""

from __future__ import annotations

from functools import cache
from typing import Any


def stem(word: str) -> str:
    """The stem of a lower-case word."""
    return str(_stemmer().stemWord(word))


@cache
def _stemmer() -> Any:
    import snowballstemmer  # type: ignore[import-untyped]  # the library ships no type information

    return snowballstemmer.stemmer("english")

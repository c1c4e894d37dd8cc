"""Stems of English words, by Snowball's library in C. It is loaded with the first word."""

from __future__ import annotations

import threading
from typing import Any

_own = threading.local()  # a stemmer serves one thread at a time, as its library says


def stem(word: str) -> str:
    """The stem of a lower-case word."""
    stemmer: Any = getattr(_own, "stemmer", None)
    if stemmer is None:
        import Stemmer

        # Each word is asked for once in the caches above it.
        stemmer = _own.stemmer = Stemmer.Stemmer("english", 0)
    return str(stemmer.stemWord(word))

"""Made-up words for the benchmarks: 24,000 of them, two in three of Latin letters, the rest Chinese characters.

None is from a corpus: syllables and characters are drawn at random. How often each is used follows Zipf's law. Words
are drawn for thousands of texts at once, and each text gets its own, as real ones do: texts cut from one long text
would flatter whatever compresses them.
"""

from __future__ import annotations

from random import Random

import numpy as np

WORDS = 24_000
LATIN = 2 / 3
DRAWN_AT_ONCE = 1_000_000
_RANK_SHIFT = 2.7  # of Zipf and Mandelbrot: the first ranks of a language are flatter than 1/rank
_ONSETS = ("b", "br", "d", "dr", "f", "g", "gl", "k", "kr", "l", "m", "n", "p", "pl", "r", "s", "sh", "t", "tr", "v")
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ea", "ou")
_ENDS = ("", "", "n", "r", "s", "t", "l", "m")
_SYLLABLES = (1, 2, 2, 3)
_FIRST, _LAST = 0x4E00, 0x9FA5  # the Chinese characters of Unicode's first block of them


def vocabulary(seed: int) -> list[str]:
    """WORDS different words, of which the first are the most frequent."""
    random = Random(seed)
    words: dict[str, None] = {}
    while len(words) < WORDS * LATIN:
        parts = (
            random.choice(_ONSETS) + random.choice(_VOWELS) + random.choice(_ENDS)
            for _ in range(random.choice(_SYLLABLES))
        )
        words["".join(parts)] = None
    while len(words) < WORDS:
        words["".join(chr(random.randint(_FIRST, _LAST)) for _ in range(random.randint(1, 3)))] = None
    made = list(words)
    random.shuffle(made)
    return made


class Words:
    """Texts of these words, the same for a seed."""

    def __init__(self, seed: int) -> None:
        self._words = np.array(vocabulary(seed), dtype=object)
        frequencies = 1 / (np.arange(WORDS) + _RANK_SHIFT)
        self._upto = np.cumsum(frequencies / frequencies.sum())
        self._numbers = np.random.default_rng(seed)
        self._drawn: list[str] = []
        self._at = 0

    def text(self, count: int) -> str:
        """The next `count` words, as one text."""
        if self._at + count > len(self._drawn):
            ranks = np.searchsorted(self._upto, self._numbers.random(DRAWN_AT_ONCE))
            self._drawn, self._at = self._words[np.minimum(ranks, WORDS - 1)].tolist(), 0
        self._at += count
        return " ".join(self._drawn[self._at - count : self._at])

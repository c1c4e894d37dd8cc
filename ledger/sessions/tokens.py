"""Tokens of a text: an estimate by what the text is made of, or a real tokenizer where one is installed.

The estimate counts words by length, digits, punctuation, blanks and Chinese characters, each with a weight. The weights
are those of two vocabularies, o200k and cl100k, fitted by least squares on English prose, Chinese reviews and news, and
Python and JavaScript code (docs/decisions, 52). A real tokenizer is `tiktoken`, where it is installed and its
vocabulary lies in TIKTOKEN_CACHE_DIR: nothing is downloaded.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[A-Z]+")
_DIGITS = re.compile(r"[0-9]{1,3}")
_PUNCTUATION = re.compile(r"[!-/:-@\[-`{-~]+")
_BLANKS = re.compile(r"[ \t]{2,}")
_LINES = re.compile(r"[\r\n]+")
_CHINESE = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_CHINESE_MARKS = re.compile(r"[\u3000-\u303f\uff00-\uffef]")
_OTHER = re.compile(r"[^\x00-\x7f\u3000-\u303f\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]")
_SAMPLED = 96 * 1024
"""Of a longer text three samples of a third of this are counted."""


@dataclass(frozen=True, slots=True)
class _Weights:
    """Tokens of each part of a text."""

    words: tuple[float, float, float, float]
    """Of at most 4, 7, 10 and more letters."""
    letter: float
    """Of each letter of a word after the tenth."""
    digits: float
    marks: float
    mark: float
    blanks: float
    lines: float
    chinese: float
    chinese_mark: float
    other: float = 0.6


_WEIGHTS = {
    "o200k": _Weights((0.957, 0.972, 1.515, 1.528), 0.354, 1.666, 0.635, 0.117, 0.764, 0.614, 0.789, 0.846),
    "cl100k": _Weights((0.975, 0.97, 1.529, 1.501), 0.363, 1.688, 0.612, 0.115, 0.783, 0.547, 1.246, 1.148),
}
# SHA-1 of the address of the vocabulary, by which tiktoken names the file in its cache.
_CACHED = {
    "o200k": "fb374d419588a4632f3f557e76b4b70aebbca790",
    "cl100k": "9b5ad71b2ce5302211f9c61530b329a4922fc6a4",
}
_OLDER = re.compile(r"gpt-(3\.5|4)(-|$)|text-embedding")
"""Models that have the vocabulary cl100k; others are counted as o200k."""


@dataclass(frozen=True, slots=True)
class Counter:
    """Counts the tokens of a text; `name` tells counters apart."""

    name: str
    count: Callable[[str], int]

    def __call__(self, text: str) -> int:
        """Tokens of a text."""
        return self.count(text)


def counter_for(model: str | None) -> Counter:
    """The counter for a model: its tokenizer where that is installed, else the estimate."""
    return _counter("cl100k" if model is not None and _OLDER.match(model) else "o200k")


@cache
def _counter(vocabulary: str) -> Counter:
    real = _tokenizer(vocabulary)
    if real is not None:
        return Counter(vocabulary, lambda text: len(real.encode_ordinary(text)))
    return Counter(f"estimate-{vocabulary}", lambda text: estimate(text, vocabulary))


def _tokenizer(vocabulary: str) -> Any:
    """The tokenizer of `tiktoken`; None where it, or the vocabulary's file, is not on this machine."""
    if not (Path(os.environ.get("TIKTOKEN_CACHE_DIR") or "/nowhere") / _CACHED[vocabulary]).is_file():
        return None
    try:
        return importlib.import_module("tiktoken").get_encoding(f"{vocabulary}_base")
    except ImportError:
        return None


def estimate(text: str, vocabulary: str = "o200k") -> int:
    """About how many tokens a text has: at least 1, 0 for an empty one."""
    if not text:
        return 0
    if len(text) > _SAMPLED:
        third = _SAMPLED // 3
        middle = len(text) // 2
        samples = (text[:third], text[middle - third // 2 : middle + third // 2], text[-third:])
        density = sum(_estimated(each, vocabulary) for each in samples) / sum(map(len, samples))
        return max(1, round(density * len(text)))
    return max(1, round(_estimated(text, vocabulary)))


def _estimated(text: str, vocabulary: str) -> float:
    weights = _WEIGHTS[vocabulary]
    of_length = _of_length(weights)
    tokens = sum(of_length[min(len(word), _LONGEST)] for word in _WORD.findall(text))
    marks = _PUNCTUATION.findall(text)
    tokens += weights.marks * len(marks) + weights.mark * sum(map(len, marks))
    tokens += weights.digits * len(_DIGITS.findall(text)) + weights.lines * len(_LINES.findall(text))
    tokens += weights.blanks * len(_BLANKS.findall(text))
    if not text.isascii():
        tokens += weights.chinese * len(_CHINESE.findall(text))
        tokens += weights.chinese_mark * len(_CHINESE_MARKS.findall(text))
        tokens += weights.other * len(_OTHER.findall(text))
    return tokens


_LONGEST = 4_096


@lru_cache(maxsize=4)
def _of_length(weights: _Weights) -> list[float]:
    """Tokens of a word by its number of letters."""
    four, seven, ten, longer = weights.words
    short = [0.0, *[four] * 4, *[seven] * 3, *[ten] * 3]
    return short + [longer + weights.letter * (length - 10) for length in range(11, _LONGEST + 1)]

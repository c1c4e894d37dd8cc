"""Summaries without a model: the sentences with the words that the document says most."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

from kledger.contract.documents import MOST_HEADING, MOST_SUMMARY

_SENTENCES_OF_A_DOCUMENT = 3
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n")
_LINE_GOES_ON = re.compile(r"\n(?![-*#>|+\d`~ ])")
_MARKS = re.compile(r"^[-*#>+\d.`~\s]*\s|[*_`]{2,}|\[([^\]]*)\]\([^)]*\)")
_WORD = re.compile(r"[a-z0-9_]{3,}|[\u3400-\u9fff]{2}", re.IGNORECASE)
_LEAST, _USUAL = 20, 240
"""Characters of a sentence that may stand for others."""


def summaries(sections: Sequence[Sequence[str]]) -> tuple[str, list[str]]:
    """The summary of a document, and of each of its sections (their chunks)."""
    by_section = [[s for chunk in chunks for s in _sentences(chunk)] for chunks in sections]
    said = Counter(word for each in by_section for sentence in each for word in set(_words(sentence)))
    best = [max(each, key=lambda sentence: _weight(sentence, said), default="") for each in by_section]
    ranked = sorted(range(len(best)), key=lambda number: (-_weight(best[number], said), number))
    chosen = sorted(ranked[:_SENTENCES_OF_A_DOCUMENT])
    of_document = " ".join(best[number] for number in chosen if best[number])
    return of_document[:MOST_SUMMARY], [sentence[:MOST_HEADING] for sentence in best]


def _sentences(text: str) -> list[str]:
    """Sentences without the marks of Markdown; rows of tables are none."""
    found = (
        " ".join(_MARKS.sub(r"\1", sentence).split())
        for paragraph in text.split("\n\n")
        if not paragraph.startswith(("```", "~~~"))
        for sentence in _SENTENCE.split(_LINE_GOES_ON.sub(" ", paragraph))
        if not sentence.startswith("|")
    )
    return [sentence for sentence in found if sentence]


def _words(sentence: str) -> list[str]:
    return [word.lower() for word in _WORD.findall(sentence)]


def _weight(sentence: str, said: Counter[str]) -> float:
    """The mean weight of its words; less for what is very short or long."""
    words = set(_words(sentence))
    if not words:
        return 0.0
    fit = min(1.0, len(sentence) / _LEAST) * min(1.0, _USUAL / len(sentence))
    return fit * sum(math.log1p(said[word]) for word in words) / math.sqrt(len(words) + 1)

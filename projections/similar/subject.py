"""What or whom a statement is about, beyond the word that it begins with: Tom Becker is not Tom Baker."""

from __future__ import annotations

import itertools
import re
from functools import cache, lru_cache
from typing import NamedTuple

from projections.similar.change_words import CHANGE
from projections.similar.said import CLAUSE, said, stem_of
from projections.vectors.tokens import normalise
from projections.words import CJK, STOP_WORDS

_IN_ITS_CASE = re.compile(rf"[^\W_{CJK}]+")
_ARTICLES = frozenset(("the", "a", "an", "my", "our", "your", "his", "her", "their"))
_WHO = frozenset(("i", "we", "you", "he", "she", "they"))
_DOES = """
ask buy call contact deliver drive email give go have hire like live love meet need open order pay phone prefer put
reach run see send set ship sign speak switch take tell text try turn use visit wake want wear work write
"""
"""What is often done to somebody with a name, at the beginning of a statement."""
_WORDS_OF = 2
"""Words behind *of* that tell one subject from another: red door, Aqua 900."""


class Subject(NamedTuple):
    """What tells a subject from another one that begins with the same word: the rest of a name, as in Tom Becker, what
    it is of, as the key of the red door, and in Chinese what stands before 是."""

    name: frozenset[str]
    of: frozenset[str]
    before_is: frozenset[str]


def differ(one: Subject, other: Subject) -> bool:
    """Whether two subjects say different things of one kind. What one of them leaves out makes no difference."""
    return any(
        mine and others and not (mine <= others or others <= mine) for mine, others in zip(one, other, strict=True)
    )


@lru_cache(maxsize=4_096)
def subject(content: str, about: str) -> Subject:
    """The subject of a content that begins with `about`, or has it further on."""
    words = list(_IN_ITS_CASE.finditer(content))
    at = next((at for at, word in enumerate(words) if stem_of(normalise(word[0])) == about), len(words))
    rest = words[at + 1 :]
    does = about in _verbs() or (at > 0 and words[at - 1][0].lower() in _WHO)  # use Slack, I like Jazz
    name = [] if does else list(itertools.takewhile(lambda word: _is_of_a_name(content, word), rest))
    of = rest[len(name) :]
    stated = []
    if of and of[0][0].lower() == "of":
        stated = [word[0].lower() for word in of[1:] if word[0].lower() not in _ARTICLES][:_WORDS_OF]
        stated = list(itertools.takewhile(lambda word: word not in STOP_WORDS, stated))
    before, is_there, _ = CLAUSE.split(content.strip(), maxsplit=1)[0].partition("是")
    chinese = said(CHANGE.sub(" ", normalise(before))).words if is_there else frozenset[str]()
    return Subject(frozenset(normalise(word[0]) for word in name), frozenset(map(stem_of, stated)), chinese)


@cache
def _verbs() -> frozenset[str]:
    return frozenset(map(stem_of, _DOES.split()))


def _is_of_a_name(content: str, word: re.Match[str]) -> bool:
    """Whether a word goes on with the name before it: with a capital letter, and a space between."""
    return content[word.start() - 1] in " -" and word[0][0].isupper()

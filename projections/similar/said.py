"""A statement as it is compared with what was said earlier: its words, and what it is about."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from projections.english import BASES, stem
from projections.similar.change_words import BELIEVED, CHANGE, NEGATED
from projections.similar.first_person import speaks_of_itself
from projections.vectors.tokens import normalise
from projections.words import CJK, STOP_CHARACTERS, STOP_WORDS

WORD = re.compile(rf"[{CJK}]|[^\W_{CJK}]+")
CLAUSE = re.compile("[,;:.!?，。；：、！？]")
_NOT_WORDS = frozenset("不没无未") | {"never", "none", "noth", "cannot"}


def stem_of(word: str) -> str:
    """The stem of a word in lower case, of an irregular form too."""
    return stem(BASES.get(word, word))


class Said(NamedTuple):
    """A statement: the stems of its words, in Chinese its characters, and the first of them, or the first two
    characters, which is what or whom it is about."""

    plain: str
    words: frozenset[str]
    about: str
    of_itself: bool
    """Whether it says *I* or 我, which is no word of these."""
    negated: bool

    def denies(self, earlier: Said) -> bool:
        """Whether it says all that an earlier one says, and one of the two says *not*."""
        return self.negated != earlier.negated and earlier.words - _NOT_WORDS <= self.words

    def names_another(self, earlier: Said) -> bool:
        """Whether it names something before what an earlier statement is about that is no word of that one or of a
        change: of somebody who said *I* it is then not said."""
        about = earlier.about
        at = next((word.start() for word in WORD.finditer(self.plain) if stem_of(word[0]) == about), None)
        before = self.plain.partition(about)[0] if at is None else self.plain[:at]
        before = CLAUSE.split(before)[-1]
        return not said(CHANGE.sub(" ", before)).words <= earlier.words


@lru_cache(maxsize=4_096)
def said(content: str) -> Said:
    """A content as it is compared."""
    plain = BELIEVED.sub("", normalise(content))
    spoken = (word for word in WORD.findall(plain) if word not in STOP_WORDS and word not in STOP_CHARACTERS)
    words = list(map(stem_of, spoken))
    chinese = [word for word in words[:2] if len(word) == 1 and not word.isascii()]
    first = next((word for word in words if not word.isdecimal()), "")  # of *I have 3 cats* the cats
    about = "".join(chinese) if len(chinese) == 2 else first
    return Said(plain, frozenset(words), about, speaks_of_itself(content), NEGATED.search(content) is not None)

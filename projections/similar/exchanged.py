"""Whether of two Chinese texts with the same characters one has two parts in each other's place: 小明欠小红钱 and
小红欠小明钱.

Chinese has no capitals that would mark names, so any two parts count, where something stands between them that is no
more than a conjunction. Clauses may change their order, and so may what is listed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from projections.similar.rewordings import LIGHT_CHARACTERS, plain_chinese
from projections.vectors.tokens import CJK

_BETWEEN_CLAUSES = re.compile(r"[,;:.!?。\n]+")
_NOT_CHINESE = re.compile(rf"[^{CJK}、]+")
_EQUATES = frozenset("是为")
_DROPPED = re.compile(f"[{''.join(LIGHT_CHARACTERS - _EQUATES)}]")
_LISTS = "、"
_JOINS = frozenset("跟同或,、")
"""Characters that join two parts of equal rank; the others are dropped as light ones."""
_LONGEST = 200
"""Characters between the first and the last difference; two parts that are further apart are not looked for."""


def clauses(plain: str) -> tuple[str, ...]:
    """The clauses of a text: its Chinese characters that bear the meaning, one word for its synonyms."""
    return tuple(filter(None, map(_bare, _BETWEEN_CLAUSES.split(plain))))


def _bare(clause: str) -> str:
    return _DROPPED.sub("", plain_chinese(_NOT_CHINESE.sub("", clause)))


def exchanged(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two parts of these clauses have changed places, and what stands between them says something."""
    if one == other or Counter(one) == Counter(other):
        return False
    mine, others = ",".join(one), ",".join(other)
    if len(mine) != len(others) or Counter(mine) != Counter(others):
        return False
    at, end = _shared(mine, others), _shared(mine[::-1], others[::-1])
    if len(mine) - at - end > _LONGEST:
        return False
    before, after = mine[:at], mine[len(mine) - end :]
    cores = mine[at : len(mine) - end], others[at : len(mine) - end]
    return any(_says_something(_trimmed(middle, before, after)) for middle in _middles(*cores))


def _shared(one: str, other: str) -> int:
    """How many characters both begin with."""
    return next((at for at, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]), len(one))


def _middles(mine: str, others: str) -> Iterator[str]:
    """What stands between two parts of the first text that stand in each other's place in the second one."""
    for first in range(1, len(mine)):
        if not others.endswith(mine[:first]):
            continue
        rest, others_rest = mine[first:], others[:-first]
        for last in range(1, len(rest) + 1):
            if others_rest.startswith(rest[-last:]) and rest[:-last] == others_rest[last:]:
                yield rest[:-last]


def _trimmed(middle: str, before: str, after: str) -> str:
    """The middle without what both parts begin or end with: 王小 of 王小明 and 王小红."""
    begins = next((n for n in range(len(middle), 0, -1) if before.endswith(middle[-n:])), 0)
    middle = middle[: len(middle) - begins]
    ends = next((n for n in range(len(middle), 0, -1) if after.startswith(middle[:n])), 0)
    return middle[ends:]


def _says_something(middle: str) -> bool:
    listed = middle.startswith(_LISTS) and middle.endswith(_LISTS)
    return not listed and not _JOINS.issuperset(middle)

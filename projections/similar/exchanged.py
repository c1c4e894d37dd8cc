"""Whether of two texts with the same words one has two parts in each other's place: 小明欠小红钱 and 小红欠小明钱, or
"the dog chased the cat" and "the cat chased the dog".

Few parts are marked as names, so any two count, where something stands between them that is no more than a conjunction.
Clauses may change their order, and so may what is listed, and a part that only moves, as a time or a place does.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from projections.similar.rewordings import LIGHT_CHARACTERS, LIGHT_WORDS, meaning, plain_chinese
from projections.words import CJK

Clause = tuple[str, ...]
"""The terms of a clause that bear the meaning: what English words mean, and single Chinese characters."""

_BETWEEN_CLAUSES = re.compile(r"(?:[,;:.!?](?![^\W_])|[。\n])+")
_TERM = re.compile(rf"[{CJK}、]+|[^\s{CJK}、]+")
_SAID_OF_ONE = "am is are was were been being be has had have me my mine your yours us our ours"
_SAID_AS = "be be be be be be be be have have have i i i you you we we we"
_KEPT = dict(zip(_SAID_OF_ONE.split(), _SAID_AS.split(), strict=True)) | {
    word: word for word in ["i", "you", "we", "and", "or"]
}
"""Words that are light elsewhere, and say here who does what to whom, or join two parts."""
_DROPPED = re.compile(f"[{''.join(LIGHT_CHARACTERS - frozenset('是为我你您'))}]")
_LISTS = "、"
_JOINS = frozenset(("跟", "同", "或", ",", "、", "and", "or"))
"""Terms that join two parts of equal rank; the others are dropped as light ones."""
_LONGEST = 200
"""Terms between the first and the last difference; two parts that are further apart are not looked for."""


def clauses(plain: str) -> tuple[Clause, ...]:
    """The clauses of a text."""
    return tuple(filter(None, (tuple(_terms(clause)) for clause in _BETWEEN_CLAUSES.split(plain))))


def _terms(clause: str) -> Iterator[str]:
    for run in _TERM.findall(clause):
        if run.isascii() or not _IS_CHINESE(run):
            word = run.strip("\"'`()[]*…“”‘’").lower().removesuffix("'s")
            if word and (word in _KEPT or word not in LIGHT_WORDS):
                yield _KEPT.get(word) or meaning(word)
        else:
            yield from _DROPPED.sub("", plain_chinese(run))


_IS_CHINESE = re.compile(f"[{CJK}、]").match


def exchanged(one: Sequence[Clause], other: Sequence[Clause]) -> bool:
    """Whether two parts of these clauses have changed places, and what stands between them says something.

    Clauses that both have, and what only one of them says, are read over.
    """
    if one == other:
        return False
    mine, others = (_joined(each) for each in _odd(one, other))
    both = frozenset(mine) & frozenset(others)
    mine, others = (tuple(filter(both.__contains__, each)) for each in (mine, others))
    if len(mine) != len(others) or mine == others or Counter(mine) != Counter(others):
        return False
    at, end = _shared(mine, others), _shared(mine[::-1], others[::-1])
    if len(mine) - at - end > _LONGEST:
        return False
    before, after = mine[:at], mine[len(mine) - end :]
    cores = mine[at : len(mine) - end], others[at : len(mine) - end]
    return any(_says_something(_trimmed(middle, before, after)) for middle in _middles(*cores))


def _odd(one: Sequence[Clause], other: Sequence[Clause]) -> tuple[list[Clause], list[Clause]]:
    """The clauses of each text that the other one lacks, in order."""
    both = Counter(one) & Counter(other)
    odd: tuple[list[Clause], list[Clause]] = ([], [])
    for side, of_clauses in zip(odd, (one, other), strict=True):
        left = both.copy()
        for clause in of_clauses:
            if left[clause]:
                left[clause] -= 1
            else:
                side.append(clause)
    return odd


def _joined(each: Sequence[Clause]) -> Clause:
    return tuple(term for clause in each for term in (",", *clause))[1:]


def _shared(one: Clause, other: Clause) -> int:
    """How many terms both begin with."""
    return next((at for at, pair in enumerate(zip(one, other, strict=True)) if pair[0] != pair[1]), len(one))


def _middles(mine: Clause, others: Clause) -> Iterator[Clause]:
    """What stands between two parts of the first text that stand in each other's place in the second one."""
    for first in range(1, len(mine)):
        if others[-first:] != mine[:first]:
            continue
        rest, others_rest = mine[first:], others[:-first]
        for last in range(1, len(rest) + 1):
            if others_rest[:last] == rest[-last:] and rest[:-last] == others_rest[last:]:
                yield rest[:-last]


def _trimmed(middle: Clause, before: Clause, after: Clause) -> Clause:
    """The middle without what both parts begin or end with: 王小 of 王小明 and 王小红."""
    begins = next((n for n in range(min(len(middle), len(before)), 0, -1) if before[-n:] == middle[-n:]), 0)
    middle = middle[: len(middle) - begins]
    ends = next((n for n in range(min(len(middle), len(after)), 0, -1) if after[:n] == middle[:n]), 0)
    return middle[ends:]


def _says_something(middle: Clause) -> bool:
    listed = bool(middle) and middle[0] in _JOINS and middle[-1] in _JOINS
    return not listed and not _JOINS.issuperset(middle)

"""What a text became, word by word: which words were removed and which were added.

Chinese is compared by character, everything else by word. Blanks between the words of a line do not count; line breaks
and the blanks that begin a line do. The length that is compared and the work are bounded: a longer text is cut, and
texts that have little in common are one removed and one added.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Literal, NamedTuple, TypeVar

from projections.words import CJK

T = TypeVar("T")
Kind = Literal["same", "removed", "added", "cut"]
MOST = 20_000
"""Characters of each text that are compared."""
_MOST_CHANGES = 300
"""Words that may differ; the work grows with the square of it."""
_TOKEN = re.compile(rf"(?:[{CJK}]|(?:(?![{CJK}])\w)+|[^\w\s])\s*|\s+")


class Part(NamedTuple):
    """A stretch of words. One that is `cut` ends the list and has no text: what follows was not compared."""

    kind: Kind
    text: str


class _Run(NamedTuple):
    """Words that are the same in both texts, from which one on in each."""

    before: int
    after: int
    length: int


async def beside(work: Callable[[], T]) -> T:
    """What a page's comparisons come to, made in one thread for the whole node.

    A page of long texts takes seconds: the event loop goes on, and pages asked for at once wait for each other.
    """
    return await asyncio.get_running_loop().run_in_executor(_comparing(), work)


@cache
def _comparing() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, thread_name_prefix="differences")


def differences(before: str, after: str) -> list[Part]:
    """The stretches of both texts in order; of what was replaced, the removed comes before the added."""
    was, now = _TOKEN.findall(before[:MOST]), _TOKEN.findall(after[:MOST])
    parts = list(_parts(was, now, _runs([_key(token) for token in was], [_key(token) for token in now])))
    if len(before) > MOST or len(after) > MOST:
        parts.append(Part("cut", ""))
    return parts


def _key(token: str) -> str:
    """A word as it is compared, with the line break after it and what begins the next line."""
    word, line, indent = token.partition("\n")
    return (word.rstrip() or word) + line + indent


def _parts(was: Sequence[str], now: Sequence[str], runs: Sequence[_Run]) -> Iterator[Part]:
    at = to = 0
    for run in [*runs, _Run(len(was), len(now), 0)]:
        if removed := "".join(was[at : run.before]):
            yield Part("removed", removed)
        if added := "".join(now[to : run.after]):
            yield Part("added", added)
        at, to = run.before + run.length, run.after + run.length
        if same := "".join(now[run.after : to]):
            yield Part("same", same)


def _runs(was: Sequence[str], now: Sequence[str]) -> list[_Run]:
    """What is the same, without single characters between changes: they would make a change harder to read."""
    head = _same_at_start(was, now)
    tail = _same_at_start(was[head:][::-1], now[head:][::-1])
    runs: list[_Run] = [_Run(0, 0, head)] if head else []
    for at, to in _matches(was[head : len(was) - tail], now[head : len(now) - tail]):
        last = runs[-1] if runs else _Run(0, 0, 0)
        if (head + at, head + to) == (last.before + last.length, last.after + last.length):
            runs[-1:] = [last._replace(length=last.length + 1)]
        else:
            runs.append(_Run(head + at, head + to, 1))
    kept = [run for run in runs if run.length > 1 or len(was[run.before]) > 1 or run.before == 0 or run.after == 0]
    return [*kept, _Run(len(was) - tail, len(now) - tail, tail)]


def _same_at_start(one: Sequence[str], other: Sequence[str]) -> int:
    both = zip(one, other, strict=False)
    return next((at for at, (this, that) in enumerate(both) if this != that), min(len(one), len(other)))


def _matches(was: Sequence[str], now: Sequence[str]) -> list[tuple[int, int]]:
    """Which words are the same, by the shortest edit (Myers 1986); none where that changes more words than allowed."""
    furthest = {1: 0}
    trail: list[dict[int, int]] = []
    for changes in range(min(len(was) + len(now), _MOST_CHANGES) + 1):
        trail.append(dict(furthest))
        for diagonal in range(-changes, changes + 1, 2):
            at = _entered(furthest, diagonal, changes)[1]
            to = at - diagonal
            while at < len(was) and to < len(now) and was[at] == now[to]:
                at, to = at + 1, to + 1
            furthest[diagonal] = at
            if at >= len(was) and to >= len(now):
                return _walked_back(trail, at, to)
    return []


def _entered(furthest: dict[int, int], diagonal: int, changes: int) -> tuple[int, int]:
    """From which diagonal this one is entered, and where: by a word added, or by one removed."""
    if diagonal == -changes or (diagonal != changes and furthest[diagonal - 1] < furthest[diagonal + 1]):
        return diagonal + 1, furthest[diagonal + 1]
    return diagonal - 1, furthest[diagonal - 1] + 1


def _walked_back(trail: list[dict[int, int]], at: int, to: int) -> list[tuple[int, int]]:
    matches: list[tuple[int, int]] = []
    for changes in range(len(trail) - 1, -1, -1):
        came_from, entry = _entered(trail[changes], at - to, changes)
        while at > entry:
            at, to = at - 1, to - 1
            matches.append((at, to))
        if changes:
            at = trail[changes][came_from]
            to = at - came_from
    return matches[::-1]

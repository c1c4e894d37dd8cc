"""A question asked differently: what further queries add to the answer of the first one.

They are asked where the first answer is weak, and never make it worse: what the first one found at or above the floor
keeps its place, and what they found has to be clearly better than whatever it comes before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Generic, TypeVar

from projections.search.match import covered_by_each, passages_of, weighed

R = TypeVar("R")

MOST_QUERIES = 3
CLEARLY = 0.1
"""How much better the `match` of a further query's result is than that of one it comes before."""
ANCHOR = 0.25
"""The share of a question's weight (as in `match`) that one text of a model's answer has to cover."""
TRUST = 0.7
"""A match with words of a model counts so much of a match with the caller's own; measured with bench/heard.py."""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A question in other words: up to MOST_QUERIES queries, and a text that might answer it.

    `reason` says why there is less than was asked for.
    """

    queries: tuple[str, ...] = ()
    hypothetical: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Hit(Generic[R]):
    """A result of a query with its `match` to that query, from 0 to 1."""

    id: str
    match: float
    result: R


def stays_with(question: str, written: Iterable[str]) -> bool:
    """Whether what a model wrote is about the question: one text that covers ANCHOR of it stands for all of an answer.

    The others may be in another language, or in other words altogether.
    """
    read = passages_of(("", text) for text in written)
    return any(match >= ANCHOR for match in covered_by_each(weighed(question), read))


def has_words(question: str) -> bool:
    """Whether there is anything that an answer could stay with."""
    return len(weighed(question).terms) > 0


def joined(first: Sequence[Hit[R]], further: Sequence[Sequence[Hit[R]]], floor: float) -> list[Hit[R]]:
    """The results of the first query and of further ones, each once, best first.

    The order among those of the first query stays; those at or above the floor keep their places. A further result has
    TRUST times its match; it needs the floor, and comes before results of the first query that are below the floor and
    CLEARLY worse. The others come last.
    """
    known = {hit.id for hit in first}
    found = _trusted(further, floor)
    # An item that the first query found too far down is one of its own, with the better match of the two.
    raised = [found[hit.id] for hit in first if hit.match < floor and hit.id in found]
    new = [hit for hit in found.values() if hit.id not in known]
    last_sure = max((at for at, hit in enumerate(first) if hit.match >= floor), default=-1)
    places: list[Hit[R]] = list(first)
    for hit in sorted([*new, *raised], key=lambda hit: (-hit.match, hit.id)):
        _enter(places, hit, after=last_sure)
    return places


def _trusted(further: Sequence[Sequence[Hit[R]]], floor: float) -> dict[str, Hit[R]]:
    """The results of further queries that come to the floor with TRUST times their match; of each item the best."""
    found: dict[str, Hit[R]] = {}
    for hit in chain.from_iterable(further):
        trusted = Hit(hit.id, TRUST * min(1.0, max(0.0, hit.match)), hit.result)
        best = found.get(hit.id)
        if trusted.match >= floor and (best is None or best.match < trusted.match):
            found[hit.id] = trusted
    return found


def _enter(places: list[Hit[R]], hit: Hit[R], *, after: int) -> None:
    """Put a result before the first one behind `after` that is clearly worse; one that has a place only moves up."""
    own = next((at for at, each in enumerate(places) if each.id == hit.id), None)
    worse = (at for at in range(after + 1, len(places)) if at != own and places[at].match + CLEARLY <= hit.match)
    at = next(worse, len(places))
    if own is not None and own < at:
        places[own] = hit
        return
    if own is not None:
        del places[own]
    places.insert(at, hit)

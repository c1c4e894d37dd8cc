"""A question asked differently: what further queries add to the answer of the first one.

They are asked where the first answer is weak, and never make it worse: what the first one found at or above the floor
keeps its place, and what they found has to be clearly better than whatever it comes before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from projections.search.match import covered, passages, weighed

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
    asked = weighed(question)
    return any(covered(asked, passages("", text)) >= ANCHOR for text in written)


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
    found: dict[str, Hit[R]] = {}
    for hits in further:
        for hit in hits:
            trusted = Hit(hit.id, TRUST * min(1.0, max(0.0, hit.match)), hit.result)
            if trusted.match >= floor and (hit.id not in found or found[hit.id].match < trusted.match):
                found[hit.id] = trusted
    # An item that the first query found too far down is one of its own, with the better match of the two.
    raised = [hit for hit in first if hit.match < floor and hit.id in found]
    entering = sorted(
        [*(hit for hit in found.values() if hit.id not in known), *(found[hit.id] for hit in raised)],
        key=lambda hit: (-hit.match, hit.id),
    )
    places: list[Hit[R]] = list(first)
    last_sure = max((at for at, hit in enumerate(first) if hit.match >= floor), default=-1)
    for hit in entering:
        before = next((at for at, each in enumerate(places) if each.id == hit.id), None)
        at = next(
            (
                at
                for at, each in enumerate(places)
                if at > last_sure and each.id != hit.id and each.match + CLEARLY <= hit.match
            ),
            len(places),
        )
        if before is None:
            places.insert(at, hit)
        elif at < before:
            del places[before]
            places.insert(at, hit)
        else:
            places[before] = hit
    return places

"""Groups of near-duplicates: each has a survivor that every member is similar to."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from projections.similar.neighbours import neighbours
from projections.similar.sameness import similarity
from projections.similar.statements import Statement, statement
from projections.vectors.embedding.hashed import hashed_vectors

THRESHOLD = 0.8
"""The least share of what two texts say that both say."""
LEAST_COSINE = 0.3
"""Below this the vectors of two texts contradict that they say the same."""
_ROUNDS = 8  # survivors out of one heap of texts that resemble one another in a chain
_TEXTS_AT_ONCE = 2_000

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Item:
    """One active item: what it says and what it is worth. `quality` is score + helpful - 2 * harmful (K8)."""

    id: str
    text: str
    types: tuple[str, ...] = ()
    quality: float = 0.0
    confidence: float = 0.5
    created_position: int = 0

    @property
    def rank(self) -> tuple[float, float, int, str]:
        """Sorts the one that should survive first: best quality, then confidence, then the oldest."""
        return (-self.quality, -self.confidence, self.created_position, self.id)


@dataclass(frozen=True, slots=True)
class Member:
    """An item that says what the survivor says; `similarity` is 0 to 1."""

    id: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Group:
    """A survivor and those that could be merged into it, most similar first."""

    survivor: str
    merged: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """What a search for near-duplicates found. `candidates` pairs were looked at closely."""

    candidates: int
    groups: tuple[Group, ...]


def similar(items: Sequence[Item], *, threshold: float = THRESHOLD, vectors: Vectors | None = None) -> Found:
    """The groups of near-duplicates among items of one owner that are seen by the same, in n log n time.

    `vectors` are unit vectors of the texts, shape (items, dimensions); hashed ones are made when there are none.
    Every member of a group is at least `threshold` similar to its survivor itself. No item is in two groups.
    """
    # Among many that share a key only the nearest are looked at: the order by id makes them the same ones each time.
    order = sorted(range(len(items)), key=lambda place: items[place].id)
    items = [items[place] for place in order]
    told = [statement(item.text) for item in items]
    used_by: Counter[str] = Counter()
    for each in told:
        used_by.update(each.words.keys())
    at = _hashed(items) if vectors is None else vectors[order]
    pairs = neighbours([_numbers(each) for each in told], at)
    looked = _Look(items, told, used_by, at, threshold)
    agreeing = [(i, j) for i, j in pairs.tolist() if looked(i, j) is not None]
    groups: list[Group] = []
    for heap in _heaps(agreeing):
        groups += _around_survivors(heap, items, looked)
    groups.sort(key=lambda group: group.survivor)
    return Found(len(pairs), tuple(groups))


@dataclass(slots=True)
class _Look:
    """A close look at two of the items: their similarity, or None when they do not say the same."""

    items: Sequence[Item]
    told: Sequence[Statement]
    used_by: Counter[str]
    vectors: Vectors
    threshold: float

    def __call__(self, one: int, other: int) -> float | None:
        types, others = self.items[one].types, self.items[other].types
        if types and others and set(types).isdisjoint(others):
            return None
        alike = similarity(self.told[one], self.told[other], self.used_by)
        if alike is None or alike < self.threshold:
            return None
        blank = not self.vectors[one].any() or not self.vectors[other].any()  # an embedding that is not kept
        return alike if blank or float(self.vectors[one] @ self.vectors[other]) >= LEAST_COSINE else None


def _heaps(pairs: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The places that the pairs connect, heap by heap."""
    parent: dict[int, int] = {}

    def top(place: int) -> int:
        while parent.setdefault(place, place) != place:
            parent[place] = place = parent[parent[place]]
        return place

    for one, other in pairs:
        parent[top(one)] = top(other)
    heaps: dict[int, list[int]] = {}
    for place in parent:
        heaps.setdefault(top(place), []).append(place)
    return list(heaps.values())


def _around_survivors(heap: list[int], items: Sequence[Item], look: _Look) -> list[Group]:
    """The best of a heap with all that resemble it; then the best of the rest, for a few rounds."""
    left = sorted(heap, key=lambda place: items[place].rank)
    groups: list[Group] = []
    for _ in range(_ROUNDS):
        if len(left) < 2:
            break
        survivor, *others = left
        alike = {place: told for place in others if (told := look(survivor, place)) is not None}
        if alike:
            members = [Member(items[place].id, round(told, 6)) for place, told in alike.items()]
            members.sort(key=lambda member: (-member.similarity, member.id))
            groups.append(Group(items[survivor].id, tuple(members)))
        left = [place for place in others if place not in alike]
    return groups


def _numbers(told: Statement) -> NDArray[np.uint32]:
    return np.fromiter({zlib.crc32(feature.encode("utf-8", "surrogatepass")) for feature in told.features}, np.uint32)


def _hashed(items: Sequence[Item]) -> Vectors:
    slices = range(0, len(items), _TEXTS_AT_ONCE)
    parts = [hashed_vectors([item.text for item in items[at : at + _TEXTS_AT_ONCE]]) for at in slices]
    return np.concatenate(parts) if parts else np.zeros((0, 1), np.float32)

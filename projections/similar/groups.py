"""Groups of near-duplicates: each has a survivor that every member is similar to."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kledger.contract.bounds import THRESHOLD
from projections.similar.neighbours import neighbours
from projections.similar.sameness import similarity
from projections.similar.statements import Statement, statement
from projections.vectors.embedding.hashed import hashed_vectors

LEAST_COSINE = 0.3
"""Below this cosine, two texts are not taken as near-duplicates, whatever their words."""
_ROUNDS = 8  # the most survivors of one connected component, in which texts may be similar in a chain only
_TEXTS_AT_ONCE = 2_000

Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Item:
    """One active item: its text and its rank. `quality` is score + helpful - 2 * harmful."""

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
    """An item that says the same as the survivor; `similarity` is 0 to 1."""

    id: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Group:
    """A survivor and those that could be merged into it, most similar first."""

    survivor: str
    merged: tuple[Member, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """Result of a search for near-duplicates. `candidates` is the number of pairs that were checked."""

    candidates: int
    groups: tuple[Group, ...]


def similar(items: Sequence[Item], *, threshold: float = THRESHOLD, vectors: Vectors | None = None) -> Found:
    """The groups of near-duplicates among items of one owner with the same readers, in n log n time.

    `vectors` are unit vectors of the texts, shape (items, dimensions); None makes hashed ones.
    Every member of a group is itself at least `threshold` similar to the survivor. No item is in two groups.
    """
    # Of many texts with one key only neighbours are compared: the order by id makes the result deterministic.
    order = sorted(range(len(items)), key=lambda place: items[place].id)
    items = [items[place] for place in order]
    statements = [statement(item.text) for item in items]
    used_by: Counter[str] = Counter()
    for each in statements:
        used_by.update(each.words.keys())
    at = _hashed(items) if vectors is None else vectors[order]
    pairs = neighbours([_numbers(each) for each in statements], at)
    check = _Check(items, statements, used_by, at, threshold)
    same = [(i, j) for i, j in pairs.tolist() if check(i, j) is not None]
    groups: list[Group] = []
    for component in _components(same):
        groups += _around_survivors(component, items, check)
    groups.sort(key=lambda group: group.survivor)
    return Found(len(pairs), tuple(groups))


@dataclass(slots=True)
class _Check:
    """The exact check of two items: their similarity, or None when they do not say the same."""

    items: Sequence[Item]
    statements: Sequence[Statement]
    used_by: Counter[str]
    vectors: Vectors
    threshold: float

    def __call__(self, one: int, other: int) -> float | None:
        types, others = self.items[one].types, self.items[other].types
        if types and others and set(types).isdisjoint(others):
            return None
        alike = similarity(self.statements[one], self.statements[other], self.used_by)
        if alike is None or alike < self.threshold:
            return None
        blank = not self.vectors[one].any() or not self.vectors[other].any()  # there is no stored embedding
        return alike if blank or float(self.vectors[one] @ self.vectors[other]) >= LEAST_COSINE else None


def _components(pairs: Sequence[tuple[int, int]]) -> list[list[int]]:
    """The connected components of the graph with these edges (union-find)."""
    parent: dict[int, int] = {}

    def root(place: int) -> int:
        while parent.setdefault(place, place) != place:
            parent[place] = place = parent[parent[place]]
        return place

    for one, other in pairs:
        parent[root(one)] = root(other)
    components: dict[int, list[int]] = {}
    for place in parent:
        components.setdefault(root(place), []).append(place)
    return list(components.values())


def _around_survivors(component: list[int], items: Sequence[Item], check: _Check) -> list[Group]:
    """The best of a component with all that are similar to it; then the best of the rest, for a few rounds."""
    left = sorted(component, key=lambda place: items[place].rank)
    groups: list[Group] = []
    for _ in range(_ROUNDS):
        if len(left) < 2:
            break
        survivor, *others = left
        alike = {place: score for place in others if (score := check(survivor, place)) is not None}
        if alike:
            members = [Member(items[place].id, round(score, 6)) for place, score in alike.items()]
            members.sort(key=lambda member: (-member.similarity, member.id))
            groups.append(Group(items[survivor].id, tuple(members)))
        left = [place for place in others if place not in alike]
    return groups


def _numbers(text: Statement) -> NDArray[np.uint32]:
    return np.fromiter({zlib.crc32(feature.encode("utf-8", "surrogatepass")) for feature in text.features}, np.uint32)


def _hashed(items: Sequence[Item]) -> Vectors:
    slices = range(0, len(items), _TEXTS_AT_ONCE)
    parts = [hashed_vectors([item.text for item in items[at : at + _TEXTS_AT_ONCE]]) for at in slices]
    return np.concatenate(parts) if parts else np.zeros((0, 1), np.float32)

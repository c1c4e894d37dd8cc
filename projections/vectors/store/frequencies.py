"""Document frequencies of terms, kept for each reader, so that relevance depends only on what the caller may see.

An inverse document frequency over all documents would let a caller probe for words in items that are hidden from them,
as relevance would change with them. So each reader (a scope, or an entity of an ACL) has its own counts, and a query
is weighted by the sum over the readers that the caller stands for. A document that the caller sees through two
readers counts twice, both in its terms and in the number of documents; one that the caller does not see does not count
at all; for EVERYTHING each counts once. Only versions that are valid now are counted.

Weights are integers, small enough that every sum of products is exact in 32-bit floating point: a document has the same
score whatever the order of the engine's additions, and so whatever else the engine holds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kledger.contract.words import EVERYTHING
from projections.vectors.tokens import Sparse

Terms = NDArray[np.uint32]

STEPS = 800
"""A document's weights are stored in steps of 1/STEPS."""
MOST_STEPS = 2_047
"""The greatest weight of a term in a document, reached only by two with one hash, as a compound and its whole have."""
_EXACT = 2**24 - 1  # integers up to here are exact in 32-bit floating point
_RECENT = 16_384  # terms in the small arrays before they are merged into the large ones
_LATEST = 4_096  # terms of documents before they are merged into the small arrays


class Counted(NamedTuple):
    """A document that became readable (`by` 1) or unreadable (`by` -1) for these readers."""

    readers: Sequence[str]
    terms: Terms
    by: int


@dataclass(frozen=True, slots=True)
class Weighed:
    """A query with integer weights; a score divided by `scale` is the BM25 score."""

    sparse: Sparse
    scale: float


class Frequencies:
    """Document frequencies by reader: about 8 bytes for each reader and term. Used by one thread."""

    def __init__(self) -> None:
        self._readers: dict[str, _Reader] = {}

    def count(self, changed: Iterable[Counted]) -> None:
        """Add and subtract documents."""
        of: dict[str, list[tuple[Terms, int]]] = defaultdict(list)
        for readers, terms, by in changed:
            for reader in (*readers, EVERYTHING) if readers else ():
                of[reader].append((terms, by))
        for reader, parts in of.items():
            kept = self._readers.setdefault(reader, _Reader())
            kept.add(parts)
            if kept.documents <= 0:
                del self._readers[reader]

    def documents(self, reader: str) -> int:
        """The number of documents that this reader sees."""
        kept = self._readers.get(reader)
        return 0 if kept is None else kept.documents

    def counts(self) -> Iterator[tuple[str, int, Terms, NDArray[np.int32]]]:
        """Every reader with its number of documents, its terms, sorted, and their frequencies."""
        for reader, kept in self._readers.items():
            whole = kept.whole()
            yield reader, kept.documents, whole.terms, whole.counts

    def take(self, reader: str, documents: int, terms: Terms, counts: NDArray[np.int32]) -> None:
        """Set the counts of a reader, as `counts` gave them."""
        self._readers[reader] = _Reader(documents, _Counts(terms, counts))

    def clear(self) -> None:
        """Remove all counts."""
        self._readers.clear()

    def weigh(self, query: Sparse, visible: Collection[str]) -> Weighed:
        """The query weighted by BM25's inverse document frequency over what these readers see."""
        frequency, documents = np.zeros(len(query.indices), np.int64), 0
        for reader in {EVERYTHING} if EVERYTHING in visible else set(visible):
            if (kept := self._readers.get(reader)) is not None:
                frequency += kept.of(query.indices)
                documents += kept.documents
        rarity = np.log1p((documents - frequency + 0.5) / (frequency + 0.5))
        return _in_whole_numbers(query.indices, query.values.astype(np.float64) * rarity)


def stored(terms: Sparse) -> Sparse:
    """A document's terms as stored, with integer weights."""
    steps = np.clip(np.rint(terms.values.astype(np.float64) * STEPS), 1, MOST_STEPS)
    return Sparse(terms.indices, steps.astype(np.float32))


def _in_whole_numbers(indices: Terms, weights: NDArray[np.float64]) -> Weighed:
    total = float(np.sort(weights).sum())
    scale = _EXACT / MOST_STEPS / total if total > 0 else 1.0
    whole = np.floor(weights * scale)
    kept = whole > 0
    return Weighed(Sparse(indices[kept], whole[kept].astype(np.float32)), scale * STEPS)


@dataclass(slots=True)
class _Counts:
    """Sorted terms with their document frequencies."""

    terms: Terms = field(default_factory=lambda: np.zeros(0, np.uint32))
    counts: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))

    def of(self, wanted: Terms) -> NDArray[np.int64]:
        if not len(self.terms):
            return np.zeros(len(wanted), np.int64)
        at = np.minimum(np.searchsorted(self.terms, wanted), len(self.terms) - 1)
        return np.where(self.terms[at] == wanted, self.counts[at], 0).astype(np.int64)

    def with_more(self, terms: Terms, counts: NDArray[np.int32]) -> _Counts:
        together = np.concatenate((self.terms, terms))
        order = np.argsort(together, kind="stable")
        together = together[order]
        starts = np.flatnonzero(np.r_[True, together[1:] != together[:-1]]) if len(together) else order
        summed = np.add.reduceat(np.concatenate((self.counts, counts))[order], starts) if len(together) else counts
        left = summed != 0
        return _Counts(together[starts][left], summed[left].astype(np.int32))


@dataclass(slots=True)
class _Reader:
    """Counts of one reader: large arrays, small ones with later changes, and the latest documents as they came."""

    documents: int = 0
    large: _Counts = field(default_factory=_Counts)
    recent: _Counts = field(default_factory=_Counts)
    latest: list[tuple[Terms, int]] = field(default_factory=list)
    latest_terms: int = 0

    def add(self, changed: Iterable[tuple[Terms, int]]) -> None:
        for terms, by in changed:
            self.documents += by
            self.latest.append((terms, by))
            self.latest_terms += len(terms)
        if self.latest_terms > _LATEST:
            self.recent = self.recent.with_more(*self._drained())
            if len(self.recent.terms) > max(_RECENT, len(self.large.terms) // 8):
                self.large, self.recent = self.large.with_more(self.recent.terms, self.recent.counts), _Counts()

    def of(self, wanted: Terms) -> NDArray[np.int64]:
        return self.large.of(wanted) + self.recent.of(wanted) + _counted(wanted, self.latest)

    def whole(self) -> _Counts:
        """All counts in one pair of arrays."""
        self.recent = self.recent.with_more(*self._drained())
        self.large, self.recent = self.large.with_more(self.recent.terms, self.recent.counts), _Counts()
        return self.large

    def _drained(self) -> tuple[Terms, NDArray[np.int32]]:
        terms, by = _joined(self.latest)
        self.latest, self.latest_terms = [], 0
        return terms, by


def _joined(changed: Sequence[tuple[Terms, int]]) -> tuple[Terms, NDArray[np.int32]]:
    if not changed:
        return np.zeros(0, np.uint32), np.zeros(0, np.int32)
    return (
        np.concatenate([terms for terms, _ in changed]),
        np.repeat(np.array([by for _, by in changed], np.int32), [len(terms) for terms, _ in changed]),
    )


def _counted(wanted: Terms, changed: Sequence[tuple[Terms, int]]) -> NDArray[np.int64]:
    """The frequencies of the wanted terms, each named once, in documents that are not sorted in yet."""
    found = np.zeros(len(wanted), np.int64)
    if not changed or not len(wanted):
        return found
    terms, by = _joined(changed)
    order = np.argsort(wanted)
    at = np.minimum(np.searchsorted(wanted, terms, sorter=order), len(wanted) - 1)
    places = order[at]
    hit = wanted[places] == terms
    np.add.at(found, places[hit], by[hit])
    return found

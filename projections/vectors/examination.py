"""Examination of a stored point: its differences from the point as it should be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from projections.vectors.errors import VectorsDamaged
from projections.vectors.store.frequencies import STEPS, stored
from projections.vectors.store.port import AWAITED, NONE, Point, SearchOptions, VectorStore, Whole, payload_of
from projections.vectors.tokens import Sparse

# The distance of a vector from itself with a byte a dimension: at most 0.0133 of its length of one, over 240,000
# vectors of 64 to 1,536 dimensions. A bound for each number is wrong for one vector in ten thousand.
_CLOSE = 0.025
_UNIT = 2e-3
_LIMIT = 20
# A search by all words of a long text took up to 60 ms with a filter, and told little: most items have one of them.
_WORDS_SEARCHED = 16


def differences(store: VectorStore, points: Sequence[Point], searched: int) -> list[str]:
    """Differences between the store and these points, described; `searched` of them are also searched for."""
    result = []
    try:
        there = store.read([(point.item_id, point.version) for point in points])
        for place, point in enumerate(points):
            found = there.get((point.item_id, point.version))
            wrong = difference(point, found)
            if wrong is None and found is not None and place < searched:
                wrong = unfound(store, point, found)
            result += [wrong] if wrong else []
    except VectorsDamaged as error:
        result.append(error.message)
    return result


def difference(point: Point, there: Whole | None) -> str | None:
    """The first difference of a stored point, described; None when there is none.

    A dense vector is compared where `point` has one; otherwise the stored one has to be usable, or not due.
    """
    name = f"version {point.version} of {point.item_id!r}"
    if there is None:
        return f"{name} is not there"
    expected = payload_of(point)
    for field, value in expected.items():
        if field != "awaits" and there.payload.get(field) != value:
            return f"{name} has another {field}"
    terms = stored(point.sparse)  # a weight beyond the greatest that is stored is that one
    order, theirs = np.argsort(terms.indices), np.argsort(there.terms.indices)
    if not np.array_equal(terms.indices[order], there.terms.indices[theirs]):
        return f"{name} has other terms"
    if not _near(terms.values[order] / STEPS, there.terms.values[theirs], 2 / STEPS):
        return f"{name} has other weights of its terms"
    if point.dense is not None:
        near = len(there.dense) == len(point.dense) and float(np.linalg.norm(point.dense - there.dense)) < _CLOSE
    elif len(there.dense):
        length = float(np.linalg.norm(there.dense))
        near = bool(np.isfinite(length)) and abs(length - 1) < _UNIT
    else:
        near = there.payload.get("awaits") in (AWAITED, NONE)
    return None if near else f"{name} has another vector"


def _near(expected: np.ndarray, there: np.ndarray, by: float) -> bool:
    """Whether no number differs by more; NaN differs. np.allclose took a tenth of the time of an examination."""
    return not len(expected) or bool(np.abs(expected - there).max() <= by)


def unfound(store: VectorStore, point: Point, there: Whole) -> str | None:
    """A description, if a version that is valid now is not found by its own words or vector by one of its readers.

    Searches by words are repeated with its type and as of its event, as each uses other indexes. They are by a few of
    its words: that a point has all of them is compared without a search.
    """
    if point.valid_to is not None or point.retired or not point.scopes:
        return None
    reader = [sorted(point.scopes)[0]]
    made = point.position if point.valid_from is None else point.valid_from
    plain = SearchOptions(reader, limit=_LIMIT)
    words = _some_of(point.sparse)
    for path, dense, sparse, options in (
        ("words", None, words, plain),
        ("words and its type", None, words, replace(plain, types=sorted(point.types)[:1])),
        ("words as of its position", None, words, replace(plain, as_of=made)),
        ("vector", there.dense, None, plain),
    ):
        if not np.any(words.values if dense is None else dense):
            continue  # a text without words has no terms, and one without letters no vector
        hits = store.search(options, dense=dense, sparse=sparse)
        # With more matches than the limit, it need not be among them.
        if len(hits) < _LIMIT and all(hit.item_id != point.item_id for hit in hits):
            return f"version {point.version} of {point.item_id!r} is not found by its own {path}"
    return None


def _some_of(terms: Sparse) -> Sparse:
    """A few terms from all over a text, always the same ones."""
    apart = -(-len(terms.indices) // _WORDS_SEARCHED)
    return terms if apart <= 1 else Sparse(terms.indices[::apart], terms.values[::apart])

"""Examination of a stored point: its differences from the point as it should be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

import numpy as np

from projections.vectors.errors import VectorsDamaged
from projections.vectors.store.frequencies import STEPS
from projections.vectors.store.port import AWAITED, NONE, Point, VectorStore, Whole, payload_of

_CLOSE = 2e-3
_LIMIT = 20


class Among(TypedDict, total=False):
    """What a search is narrowed to."""

    types: Sequence[str]
    as_of: int


def differences(store: VectorStore, points: Sequence[Point], searched: int) -> list[str]:
    """What the store has otherwise than these points, in words; `searched` of them are also searched for."""
    found = []
    try:
        there = store.read([(point.item_id, point.version) for point in points])
        for place, point in enumerate(points):
            stored = there.get((point.item_id, point.version))
            wrong = difference(point, stored)
            if wrong is None and stored is not None and place < searched:
                wrong = unfound(store, point, stored)
            found += [wrong] if wrong else []
    except VectorsDamaged as error:
        found.append(error.message)
    return found


def difference(point: Point, stored: Whole | None) -> str | None:
    """In words what a stored point has otherwise; None when it is as it ought to be.

    A point with a dense vector is compared with it; without one, that the stored one is usable, or that none is due.
    """
    name = f"version {point.version} of {point.item_id!r}"
    if stored is None:
        return f"{name} is not there"
    expected = payload_of(point)
    for field, value in expected.items():
        if field != "awaits" and stored.payload.get(field) != value:
            return f"{name} has another {field}"
    order, theirs = np.argsort(point.sparse.indices), np.argsort(stored.terms.indices)
    if not np.array_equal(point.sparse.indices[order], stored.terms.indices[theirs]):
        return f"{name} has other terms"
    if not _near(point.sparse.values[order], stored.terms.values[theirs], 2 / STEPS):
        return f"{name} has other weights of its terms"
    if point.dense is not None:
        near = len(stored.dense) == len(point.dense) and _near(point.dense, stored.dense, _CLOSE)
    elif len(stored.dense):
        length = float(np.linalg.norm(stored.dense))
        near = bool(np.isfinite(length)) and abs(length - 1) < _CLOSE
    else:
        near = stored.payload.get("awaits") in (AWAITED, NONE)
    return None if near else f"{name} has another vector"


def _near(expected: np.ndarray, stored: np.ndarray, by: float) -> bool:
    """Whether no number differs by more; one that is none differs. np.allclose was a tenth of an examination."""
    return not len(expected) or bool(np.abs(expected - stored).max() <= by)


def unfound(store: VectorStore, point: Point, stored: Whole) -> str | None:
    """Whether a version that is valid now is found by its own words and vector by who reads it.

    By its words also among those of its type and as of the event that made it: each goes by other indexes.
    """
    if point.valid_to is not None or point.retired or not point.scopes:
        return None
    reader = [sorted(point.scopes)[0]]
    made = point.position if point.valid_from is None else point.valid_from
    plain: Among = {}
    for path, dense, sparse, among in (
        ("words", None, point.sparse, plain),
        ("words and its type", None, point.sparse, Among(types=sorted(point.types)[:1])),
        ("words as of its position", None, point.sparse, Among(as_of=made)),
        ("vector", stored.dense, None, plain),
    ):
        if not np.any(point.sparse.values if dense is None else dense):
            continue  # a text without a word or a letter has nothing to be found by
        hits = store.search(dense=dense, sparse=sparse, visible_scopes=reader, limit=_LIMIT, **among)
        # Where as many others fit as well, it need not be among them.
        if len(hits) < _LIMIT and all(hit.item_id != point.item_id for hit in hits):
            return f"version {point.version} of {point.item_id!r} is not found by its own {path}"
    return None

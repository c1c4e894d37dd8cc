"""What an embedding endpoint answered: a vector for each text, checked before anybody uses or keeps it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Row = list[float]


class NoVectors(ValueError):
    """An answer that is none: it has no list of numbered vectors."""


def numbered(answer: object) -> list[tuple[int, Row]]:
    """The vectors of an answer with the places of their texts, in that order. Raises NoVectors.

    The client library checks no answer: it hands over whatever an endpoint, or a proxy before it, sent with status 200.
    """
    data = getattr(answer, "data", None)
    if not isinstance(data, list):
        raise NoVectors("an answer without vectors")
    rows: list[tuple[int, Row]] = []
    for item in data:
        index, row = getattr(item, "index", None), getattr(item, "embedding", None)
        if type(index) is not int or not isinstance(row, list):
            raise NoVectors("vectors without their numbers")
        rows.append((index, row))
    return sorted(rows, key=lambda row: row[0])


def unit(rows: Sequence[Row]) -> NDArray[np.float32]:
    """The rows, all of one size, as unit vectors; one that points nowhere (NaN, null, infinite, zero) is zeros.

    Raises NoVectors.
    """
    try:
        vectors = np.asarray(rows, np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise NoVectors("vectors of something else than numbers") from error
    if vectors.ndim != 2:
        raise NoVectors("vectors of something else than numbers")
    with np.errstate(over="ignore", invalid="ignore"):  # seen in the length
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
        points = np.isfinite(length) & (length > 0)
        return np.where(points, vectors / np.where(points, length, 1.0), 0.0).astype(np.float32)


def points_somewhere(vector: NDArray[np.float32]) -> bool:
    """Whether a vector can be compared with others: its numbers are finite, and not all zero."""
    return bool(np.isfinite(vector).all() and vector.any())

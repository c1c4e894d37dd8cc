"""Conversion of a version to a point: its text, its terms, and its dense vector if there is one already."""

from __future__ import annotations

from collections.abc import Sequence

from projections.vectors.embedding.kept import Vector
from projections.vectors.store.port import Point, text_hash
from projections.vectors.tokens import Sparse, documents_terms
from projections.vectors.wire import Store


def text_of(change: Store) -> str:
    """What is embedded of a version."""
    return f"{change.task}\n{change.content}"


def points_of(changes: Sequence[Store], dense: Sequence[Vector | None]) -> list[Point]:
    """The points of versions; one without a dense vector awaits its embedding."""
    sparse = documents_terms([text_of(change) for change in changes])
    return [_point(*each) for each in zip(changes, dense, sparse, strict=True)]


def _point(change: Store, dense: Vector | None, sparse: Sparse) -> Point:
    return Point(
        item_id=change.item_id,
        version=change.version,
        position=change.position,
        scopes=change.scopes,
        types=change.types,
        owner=change.owner,
        dense=dense,
        sparse=sparse,
        text_hash=text_hash(change.task, change.content),
        valid_from=change.valid_from,
        valid_to=change.valid_to,
        retired=change.retired,
        visibility=change.visibility,
    )

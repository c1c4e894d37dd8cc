"""Conversion of a version to a point: its text, its terms, and its dense vector if there is one already."""

from __future__ import annotations

from projections.vectors.embedding.kept import Vector
from projections.vectors.store.port import Point, text_hash
from projections.vectors.tokens import document_terms
from projections.vectors.wire import Store


def text_of(change: Store) -> str:
    """What is embedded of a version."""
    return f"{change.task}\n{change.content}"


def point_of(change: Store, dense: Vector | None) -> Point:
    """The point of a version; None awaits its embedding."""
    return Point(
        item_id=change.item_id,
        version=change.version,
        position=change.position,
        scopes=change.scopes,
        types=change.types,
        owner=change.owner,
        dense=dense,
        sparse=document_terms(change.task, change.content),
        text_hash=text_hash(change.task, change.content),
        valid_from=change.valid_from,
        valid_to=change.valid_to,
        retired=change.retired,
        visibility=change.visibility,
    )

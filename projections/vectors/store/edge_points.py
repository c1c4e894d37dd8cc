"""Stored points of Qdrant Edge, read page by page, and the document frequencies that follow from them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import qdrant_edge as edge

from kledger.contract.words import EVERYTHING
from projections.vectors.errors import reading
from projections.vectors.store.edge_filter import SERVED_NOW
from projections.vectors.store.frequencies import Counted, Frequencies, Terms
from projections.vectors.store.kept_frequencies import kept
from projections.vectors.store.port import OPEN, now_readers

TERMS = "terms"
"""The name of the sparse vectors."""
_PAGE = 1_000


@dataclass(frozen=True, slots=True)
class Stored:
    """State of a stored point: last applied position, present readers, terms."""

    applied: int
    now: Sequence[str]
    terms: Terms


def known(record: edge.Record) -> Stored:
    """The state of a point that was read with its payload's `applied` and `now`, and its terms."""
    payload = record.payload or {}
    return Stored(int(payload.get("applied", 0)), now_readers(payload), terms_of(record))


def terms_of(record: edge.Record) -> Terms:
    """The terms of a point that was read with its sparse vector."""
    terms = record.vector.get(TERMS) if isinstance(record.vector, dict) else None
    return np.asarray(terms.indices if isinstance(terms, edge.SparseVector) else [], np.uint32)


def ceased(before: Stored | None) -> list[Counted]:
    """What no longer counts where this point is replaced or removed."""
    return [Counted(before.now, before.terms, -1)] if before is not None and before.now else []


def pages(
    shard: edge.EdgeShard, where: edge.Filter | None, payload: bool | list[str], vectors: bool | list[str]
) -> Iterator[list[edge.Record]]:
    """The points that match, some at a time. Raises VectorStoreFailed."""
    offset: edge.PointId | None = None
    while True:
        request = edge.ScrollRequest(
            offset=offset, limit=_PAGE, filter=where, with_payload=payload, with_vector=vectors
        )
        with reading():
            page, offset = shard.scroll(request)
        yield page
        if offset is None:
            return


def frequencies_of(shard: edge.EdgeShard, folder: Path) -> tuple[Frequencies, int]:
    """The document frequencies over all points, and how many changes of points the file in the folder lacks.

    Those of the file and the changes since; counted anew where there is none (6 s at 100,000 points). Raises
    VectorStoreFailed.
    """
    found = kept(folder)
    if found is not None:
        frequencies, position = found
        later = _count_later(shard, frequencies, position)
        if frequencies.documents(EVERYTHING) == shard.count(edge.CountRequest(filter=SERVED_NOW, exact=True)):
            return frequencies, later
    frequencies = Frequencies()
    return frequencies, _count(frequencies, shard, SERVED_NOW, "now", 1)


def _count_later(shard: edge.EdgeShard, frequencies: Frequencies, position: int) -> int:
    """Count the versions that began after a position, and no longer those that ended after it."""
    began = edge.FieldCondition("valid_from", range=edge.RangeFloat(gt=position))
    ended = edge.Filter(
        must=[
            edge.FieldCondition("valid_from", range=edge.RangeFloat(lte=position)),
            edge.FieldCondition("valid_to", range=edge.RangeFloat(gt=position, lt=OPEN)),
            edge.FieldCondition("retired", match=edge.MatchValue(0)),
        ]
    )
    later = _count(frequencies, shard, edge.Filter(must=[SERVED_NOW, began]), "now", 1)
    return later + _count(frequencies, shard, ended, "scopes", -1)


def _count(frequencies: Frequencies, shard: edge.EdgeShard, where: edge.Filter, readers: str, by: int) -> int:
    """Add or subtract the points that match, for the readers in this field of their payload; returns how many."""
    points = 0
    for page in pages(shard, where, [readers], [TERMS]):
        frequencies.count(Counted((record.payload or {})[readers], terms_of(record), by) for record in page)
        points += len(page)
    return points

"""The paths of one search in Qdrant Edge among many points.

The paths go one after the other: the engine holds the interpreter's lock while it searches, so that in two threads they
would only wait for each other.

The dense path reads every vector, a byte for each dimension. Among many points it reads half a byte first, which the
engine keeps beside them (`coarse`), for more hits than are wanted, and only the best of these are compared by their
bytes. That is the same answer wherever the worst of what it finds is better than the best that can have been missed: a
coarse score is off by `margin` at most. How many are compared follows from the coarse scores: as many as may be needed.
Where they were too few, all coarse hits are; and where these are too few, all points.

A filter takes a quarter of the path's time. Where nearly every point is admitted, the coarse comparison goes without
one: its hits are asked again with the filter anyway.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import qdrant_edge as edge

MANY = 30_000
"""Points from which on the coarse comparison pays."""
_AS_MANY = 8
"""Coarse hits for each that is wanted."""
_FEWEST = 2
"""Coarse hits for each that is wanted, of which at least so many are compared by their bytes."""
_LEFT_OUT = 4 / 3
"""Coarse hits in which each that is wanted is found where a filter was left out that admits three of four points."""
_LOWER = 0.2
"""How far the last of the hits may be below its coarse score, as a part of the margin: 1.5 standard deviations."""
_OFF = 0.75
"""Coarse scores are off by 0.097 / √dimensions (one standard deviation), whatever the vectors, and by
0.55 / √dimensions at most among 2,600,000 pairs."""

MOST_EXACT = 32
"""Exact searches after coarse ones that were in vain."""

HALF_A_BYTE = edge.TurboQuantQuantizationConfig(bits=edge.TurboQuantBitSize.Bits4)
"""Like the vectors themselves by a rotation that depends on no vector."""
NO_GRAPH = edge.HnswIndexConfig(m=0, ef_construct=0, full_scan_threshold=0)
"""Whatever is searched, is searched point by point: a graph would link points which the caller may not see."""
# The engine reads half a byte only where the search is not called exact.
COARSE = edge.SearchParams(quantization=edge.QuantizationSearchParams(rescore=False))

Hits = Sequence[edge.ScoredPoint]


class Paths:
    """Asks a shard. Its methods belong to one thread."""

    def __init__(self, dimensions: int) -> None:
        self._margin = margin(dimensions)
        self._in_vain = 0
        self._exact_ones = 0

    def answers(
        self, shard: edge.EdgeShard, asked: Mapping[str, edge.QueryRequest], coarse: str | None, *, most_admitted: bool
    ) -> Mapping[str, Hits]:
        """The hits of each path; `coarse` names one by vectors, `most_admitted` says that its filter leaves out few."""
        return {
            path: self.nearest(shard, one, most_admitted=most_admitted) if path == coarse else shard.query(one)
            for path, one in asked.items()
        }

    def nearest(self, shard: edge.EdgeShard, asked: edge.QueryRequest, *, most_admitted: bool) -> Hits:
        """The hits of an exact search by vector.

        Where vectors are nearer to each other than the margin, the coarse comparison is in vain; then the next
        searches, up to MOST_EXACT of them, go without it.
        """
        if self._exact_ones:
            self._exact_ones -= 1
            return shard.query(asked)
        most = asked.limit * _AS_MANY
        coarse_filter = None if most_admitted else asked.filter
        hits = shard.query(edge.QueryRequest(most, query=asked.query, filter=coarse_filter, params=COARSE))
        if len(hits) < most:  # there are few, and few are compared soon
            return shard.query(asked)
        further = asked.filter if most_admitted else None
        for many in sorted({self.enough(hits, asked.limit), most}):
            found = _among(shard, asked, hits[:many], further)
            if len(found) == asked.limit and found[-1].score > hits[many - 1].score + self._margin:
                self._in_vain = 0
                return found
        self._exact_ones = min(2**self._in_vain, MOST_EXACT)
        self._in_vain += 1
        return shard.query(asked)

    def enough(self, hits: Hits, wanted: int) -> int:
        """How many coarse hits will do, most likely: the last one wanted is above the others by more than the margin.

        Its own score is not known yet: it is taken to be near to its coarse one.
        """
        last = hits[min(len(hits), math.ceil(wanted * _LEFT_OUT)) - 1].score - _LOWER * self._margin
        close = sum(hit.score + self._margin >= last for hit in hits)
        return min(len(hits), max(close + 1, wanted * _FEWEST))


def margin(dimensions: int) -> float:
    """How far a coarse score may be from that of the bytes."""
    return _OFF / math.sqrt(dimensions)


def _among(shard: edge.EdgeShard, asked: edge.QueryRequest, hits: Hits, further: edge.Filter | None) -> Hits:
    """The answer to a question among these hits alone."""
    among: list[edge.ConditionType] = [edge.HasIdCondition({hit.id for hit in hits})]
    if further is not None:
        among.append(further)
    theirs = edge.Filter(must=among)
    return shard.query(edge.QueryRequest(asked.limit, query=asked.query, filter=theirs, params=asked.params))

"""The paths of one search in Qdrant Edge among many points.

The engine lets go of the interpreter's lock while it searches, but takes the queries of a batch one after another. So
the paths go beside each other, in two threads. The thread that calls waits for both: nothing is written meanwhile.

A filter takes a quarter of the dense path's time. Where nearly every point is admitted, the path goes without one, for
somewhat more hits, and only these are asked again with the filter. That is the same answer: what is missing among them
would have to be better than the worst of them, and whatever is better is among them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

import qdrant_edge as edge

MANY = 30_000
"""Points from which on this pays: a turn of a thread takes as long as the keyword path among 10,000."""
_AS_MANY = 2
"""Hits without the filter, for each that is wanted."""

Hits = Sequence[edge.ScoredPoint]


class Paths:
    """Asks a shard. Its methods belong to one thread."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "search-path")

    def answers(
        self, shard: edge.EdgeShard, asked: Mapping[str, edge.QueryRequest], over_all: str | None
    ) -> Mapping[str, Hits]:
        """The hits of each path; `over_all` names one whose filter admits most points."""
        first, *others = sorted(asked, key=lambda path: path != over_all)
        beside = {path: self._thread.submit(shard.query, asked[path]) for path in others}
        here = _over_all(shard, asked[first]) if first == over_all else shard.query(asked[first])
        return {first: here} | {path: answer.result() for path, answer in beside.items()}

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()


def _over_all(shard: edge.EdgeShard, asked: edge.QueryRequest) -> Hits:
    most = asked.limit * _AS_MANY
    hits = shard.query(edge.QueryRequest(most, query=asked.query, params=asked.params))
    if len(hits) == most and asked.filter is not None:
        among = edge.Filter(must=[edge.HasIdCondition({hit.id for hit in hits}), asked.filter])
        found = shard.query(edge.QueryRequest(asked.limit, query=asked.query, filter=among, params=asked.params))
        if len(found) == asked.limit and found[-1].score > hits[-1].score:
            return found
    return shard.query(asked)

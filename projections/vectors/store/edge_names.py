"""Which versions the points of Qdrant Edge are: remembered, because a version's point is the same for ever.

To read 40 payloads took a quarter of the engine's time of a search at 10,000 items.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

import qdrant_edge as edge

from projections.vectors.store.port import Found
from projections.vectors.store.ties import Hits

if TYPE_CHECKING:  # the engine names this type in its stub alone
    from qdrant_edge import PointId

MOST = 20_000
"""Points that are remembered: some 10 MB."""

Read = Callable[[Sequence["PointId"]], list[edge.Record]]


class Names:
    """The versions of points; `read` reads the payloads of those that are not known yet."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._known: OrderedDict[int, Found] = OrderedDict()

    def hits(self, points: Sequence[edge.ScoredPoint], scale: float) -> Hits:
        """What the engine found, each with its score."""
        known = self._known
        ids = [point.id for point in points]  # the engine makes each anew when it is asked for
        keys = [number(each) for each in ids]
        if missing := [each for each, key in zip(ids, keys, strict=True) if key not in known]:
            self._learn(self._read(missing))
        hits = [(known[key], point.score / scale) for key, point in zip(keys, points, strict=True)]
        self._forget()
        return hits

    def clear(self) -> None:
        """Forget all: points were erased."""
        self._known.clear()

    def _learn(self, records: Iterable[edge.Record]) -> None:
        for record in records:
            payload = record.payload or {}
            self._known[number(record.id)] = Found(
                payload["item_id"], payload["version"], payload["valid_from"], None, None
            )

    def _forget(self) -> None:
        while len(self._known) > MOST:
            self._known.popitem(last=False)


def number(key: PointId) -> int:
    """The id of a point as a number, whose hash and equality cost no call of a function in Python, as a UUID's do."""
    return key.int if isinstance(key, UUID) else int(key)

"""Which versions the points of Qdrant Edge are: remembered, because a version's point is the same for ever.

To read a payload takes the engine 17 to 35 us, and a search meets some forty. So a point is known from when it is
written; one that was written before the start is read when it is first found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING
from uuid import UUID

import qdrant_edge as edge

from projections.vectors.store.port import Found
from projections.vectors.store.ties import Hits

if TYPE_CHECKING:  # the engine names this type in its stub alone
    from qdrant_edge import PointId

MOST = 120_000
"""Points that are remembered: some 22 MB."""

_BETWEEN = "\0"  # no text of an event has it
Read = Callable[[Sequence["PointId"]], list[edge.Record]]


class Names:
    """The versions of points; `read` reads the payloads of those that are not known yet."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._known: dict[int, str] = {}  # one text for each takes less than half of a tuple

    def hits(self, points: Sequence[edge.ScoredPoint], scale: float) -> Hits:
        """What the engine found, each with its score."""
        known = self._known
        ids = [point.id for point in points]  # the engine makes each anew when it is asked for
        keys = [number(each) for each in ids]
        if missing := [each for each, key in zip(ids, keys, strict=True) if key not in known]:
            for record in self._read(missing):
                self._keep(number(record.id), record.payload or {})
        hits = [(_found(known[key]), point.score / scale) for key, point in zip(keys, points, strict=True)]
        self._forget()
        return hits

    def learn(self, written: Mapping[str, Mapping[str, object]]) -> None:
        """Remember points that were stored: their payloads by id."""
        for key, payload in written.items():
            self._keep(int(key.replace("-", ""), 16), payload)
        self._forget()

    def drop(self, points: Iterable[PointId]) -> None:
        """Forget points that were erased."""
        for point in points:
            self._known.pop(number(point), None)

    def clear(self) -> None:
        """Forget all: every point was removed."""
        self._known.clear()

    def _keep(self, key: int, payload: Mapping[str, object]) -> None:
        self._known[key] = f"{payload['item_id']}{_BETWEEN}{payload['version']}{_BETWEEN}{payload['valid_from']}"

    def _forget(self) -> None:
        """Forget the oldest where there are too many, a quarter at once: the first is found past all that are gone."""
        if len(self._known) > MOST:
            for key in list(islice(self._known, len(self._known) - MOST + MOST // 4)):
                del self._known[key]


def number(key: PointId) -> int:
    """The id of a point as a number, whose hash and equality cost no call of a function in Python, as a UUID's do."""
    return key.int if isinstance(key, UUID) else int(key)


def _found(name: str) -> Found:
    item_id, version, valid_from = name.split(_BETWEEN)
    return Found(item_id, int(version), int(valid_from), None, None)

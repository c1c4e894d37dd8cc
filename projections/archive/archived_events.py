"""Events of an archived segment as a sequence: one is made where it is asked for, all where they are gone through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
import pyarrow as pa

from ledger.archive.event_file import event_of, events_in
from ledger.archive.events import SegmentEvents
from ledger.archive.segments import Segment
from ledger.event import StoredEvent
from projections.engine.unsealing import Extent


class ArchivedEvents(Sequence[StoredEvent]):
    """The events of a part of a segment. Where they stand is known; to ask for one may raise NotBelieved."""

    def __init__(self, segment: SegmentEvents, part: Segment) -> None:
        self._segment = segment
        self._part = part.first - segment.segment.first, part.last - part.first + 1
        self._at_hand: dict[int, StoredEvent] = {}

    def __len__(self) -> int:
        return self._part[1]

    @property
    def extent(self) -> Extent:
        """Where they stand in the log."""
        times = self._segment.times.slice(*self._part)
        stored = times["stored_ns"].to_numpy()
        positions = times["position"]
        ends = positions[0].as_py(), positions[-1].as_py()
        return Extent(*ends, int(stored[-1]), int(stored.min()), int(stored.max()))

    @property
    def _rows(self) -> pa.Table:
        return self._segment.rows.slice(*self._part)

    @overload
    def __getitem__(self, at: int) -> StoredEvent: ...

    @overload
    def __getitem__(self, at: slice) -> list[StoredEvent]: ...

    def __getitem__(self, at: int | slice) -> StoredEvent | list[StoredEvent]:
        if isinstance(at, slice):
            return self.taken(np.arange(len(self))[at])
        place = range(len(self))[at]
        if place in self._at_hand:
            return self._at_hand[place]
        return event_of(*(column[place].as_py() for column in self._rows.columns))

    def taken(self, places: np.ndarray) -> list[StoredEvent]:
        """The events at these places, which ascend."""
        return events_in(self._segment.at(self._part[0] + places)) if len(places) else []

    def unpack(self, places: Sequence[int]) -> None:
        """See `Packed`."""
        ordered = sorted(places)
        self._at_hand.update(zip(ordered, self.taken(np.array(ordered, np.int64)), strict=True))

    def __iter__(self) -> Iterator[StoredEvent]:
        yield from events_in(self._rows)

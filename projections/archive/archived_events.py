"""Events of an archived segment as a sequence: one is made where it is asked for, all where they are gone through."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
import pyarrow as pa

from ledger.archive.event_file import event_of, events_in
from ledger.event import StoredEvent


class ArchivedEvents(Sequence[StoredEvent]):
    """Consecutive events over their columns."""

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows

    def __len__(self) -> int:
        return int(self._rows.num_rows)

    @overload
    def __getitem__(self, at: int) -> StoredEvent: ...

    @overload
    def __getitem__(self, at: slice) -> list[StoredEvent]: ...

    def __getitem__(self, at: int | slice) -> StoredEvent | list[StoredEvent]:
        if isinstance(at, slice):
            return self.taken(np.arange(len(self))[at])
        place = range(len(self))[at]
        return event_of(*(column[place].as_py() for column in self._rows.columns))

    def taken(self, places: np.ndarray) -> list[StoredEvent]:
        """The events at these places."""
        return events_in(self._rows.take(places))

    def __iter__(self) -> Iterator[StoredEvent]:
        yield from events_in(self._rows)

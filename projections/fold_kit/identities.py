"""Identities: which ids a view has, as a filter in memory, so that of most new ones nobody asks the view.

A Bloom filter over the keys of accepted events and of items. That an id is not there is certain. That it is there is
not: once in some hundred times it is another one, and then the view is asked, as it is for all that are.
"""

from __future__ import annotations

import duckdb
import numpy as np
import numpy.typing as npt

LEAST = 1 << 16
"""Ids that a filter has room for at first; it is made anew, twice as large, when they are more."""
_BITS = 16  # of an id: with four probes, one of 400 that are not there seems to be
_PROBES = 4
_LOW = 0xFFFFFFFF
_SINCE = """
SELECT key FROM event_keys WHERE position > {after}
UNION ALL SELECT md5_number_lower(id) FROM knowledge_state WHERE created_position > {after}
"""


class Identities:
    """The ids in a view up to a position. Written by the thread that folds; any thread may ask."""

    def __init__(self, room: int = LEAST) -> None:
        self._room, self._held = room, 0  # the room is a power of two
        self._table = (bytearray(room * _BITS // 8), room * _BITS - 1)  # one attribute: whoever asks has both of one
        self.upto = 0
        """Every id that was accepted up to this position is here."""

    def may_have(self, key: int) -> bool:
        """False where the view has no such id; true where it may."""
        bits, mask = self._table
        low, step = key & _LOW, (key >> 32) | 1
        for number in range(_PROBES):
            at = (low + number * step) & mask
            if not bits[at >> 3] & (1 << (at & 7)):
                return False
        return True

    def add(self, key: int) -> None:
        """Take in an id, whether or not its event will have been folded in the end."""
        bits, mask = self._table
        low, step = key & _LOW, (key >> 32) | 1
        for number in range(_PROBES):
            at = (low + number * step) & mask
            bits[at >> 3] |= 1 << (at & 7)
        self._held += 1

    def follow(self, con: duckdb.DuckDBPyConnection, position: int) -> None:
        """Learn what a view, which is at `position`, has accepted since the last time."""
        if self.upto >= position and self._held <= self._room:
            return
        keys, (bits, mask) = self._since(con, self.upto), self._table
        self._held += len(keys)
        if self._held > self._room:
            keys = self._since(con, 0) if self.upto else keys
            self._held = len(keys)
            self._room = max(self._room, 1 << len(keys).bit_length())
            bits, mask = bytearray(self._room * _BITS // 8), self._room * _BITS - 1
        low, step = keys & np.uint64(_LOW), (keys >> np.uint64(32)) | np.uint64(1)
        view = np.frombuffer(bits, np.uint8)
        for number in range(_PROBES):
            at = (low + np.uint64(number) * step) & np.uint64(mask)
            np.bitwise_or.at(view, at >> np.uint64(3), np.uint8(1) << (at & np.uint64(7)).astype(np.uint8))
        self._table = bits, mask  # once it is full: who asks meanwhile asks the one before
        self.upto = position

    def _since(self, con: duckdb.DuckDBPyConnection, after: int) -> npt.NDArray[np.uint64]:
        table = con.execute(_SINCE.format(after=after)).to_arrow_table()
        keys: npt.NDArray[np.uint64] = table.column(0).to_numpy()
        return keys

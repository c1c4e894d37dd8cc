"""Leaf file: 32 bytes for each event in one file, the leaf of position 1 first.

It saves reading the log again for a proof, and lets an audit name the changed event. It is trusted only as far as
signed checkpoints attest it, and is rebuilt from the log when it is lost.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ledger.integrity.chain import HASH_BYTES

CHUNK = 10_000


class LeafFile:
    """The leaves of positions 1 to `count`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @property
    def count(self) -> int:
        """The number of whole leaves; 0 without a file."""
        try:
            return self.path.stat().st_size // HASH_BYTES
        except FileNotFoundError:
            return 0

    def cut_to(self, count: int) -> None:
        """Truncate to the first `count` leaves; a partial leaf, left by a crash, goes too."""
        if self.path.exists():
            os.truncate(self.path, count * HASH_BYTES)

    def append(self, leaves: Sequence[bytes], after: int) -> None:
        """Write the leaves of the positions after `after` and sync the file to disk."""
        with self.path.open("r+b" if self.path.exists() else "w+b") as file:
            file.seek(after * HASH_BYTES)
            file.write(b"".join(leaves))
            file.truncate()
            file.flush()
            os.fsync(file.fileno())

    def read(self, first: int, last: int) -> list[bytes]:
        """The leaves of positions `first` to `last`, as far as the file has them."""
        return [leaf for chunk in self.chunks(first, last) for leaf in chunk]

    def chunks(self, first: int, last: int) -> Iterator[list[bytes]]:
        """The leaves of positions `first` to `last` in lists of up to CHUNK, as far as the file has them."""
        last = min(last, self.count)
        if first > last:
            return
        with self.path.open("rb") as file:
            file.seek((first - 1) * HASH_BYTES)
            for at in range(first, last + 1, CHUNK):
                data = file.read(min(CHUNK, last + 1 - at) * HASH_BYTES)
                yield [data[start : start + HASH_BYTES] for start in range(0, len(data), HASH_BYTES)]

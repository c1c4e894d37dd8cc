"""Leaf file: 32 bytes for each event in one file, the leaf of position 1 first.

It saves reading the log again for a proof, and lets an audit name the changed event. It is trusted only as far as
signed checkpoints attest it, and is rebuilt from the log when it is lost, cut or cannot be read: a leaf that cannot be
read counts as one that is not there.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import structlog

from ledger.integrity.chain import HASH_BYTES

log = structlog.get_logger(__name__)

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

    def holds(self, count: int) -> bool:
        """Whether so many leaves are there, in a file that can be read and written."""
        if not self.path.exists():
            return not count
        return self.path.is_file() and os.access(self.path, os.R_OK | os.W_OK) and self.count >= count

    def set_aside(self) -> None:
        """Give the file another name, under which nobody reads it. Raises OSError."""
        aside = self.path.with_name(f"{self.path.name}.set-aside-{time.time_ns()}")
        self.path.rename(aside)
        log.warning("leaves_set_aside", file=str(self.path), under=aside.name)

    def cut_to(self, count: int) -> None:
        """Truncate to the first `count` leaves; a partial leaf, left by a crash, goes too."""
        if self.path.exists():
            os.truncate(self.path, count * HASH_BYTES)

    def append(self, leaves: Sequence[bytes], after: int) -> None:
        """Write the leaves of the positions after `after` and sync the file to disk.

        Raises OSError, also where those before are not there: a gap would stay in the file.
        """
        with self.path.open("r+b" if self.path.exists() else "w+b") as file:
            if file.seek(0, os.SEEK_END) < after * HASH_BYTES:
                raise OSError(errno.EIO, f"it has lost leaves before position {after + 1}", str(self.path))
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
        try:
            with self.path.open("rb") as file:
                file.seek((first - 1) * HASH_BYTES)
                for at in range(first, last + 1, CHUNK):
                    data = file.read(min(CHUNK, last + 1 - at) * HASH_BYTES)
                    yield [data[start : start + HASH_BYTES] for start in range(0, len(data), HASH_BYTES)]
        except OSError as error:
            log.warning("leaves_unreadable", file=str(self.path), error=error.strerror)

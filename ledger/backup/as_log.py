"""A backup as a log: its events are read from its files, each of which has to be the one that the manifest names.

So views are folded from a backup while a stream is filled from it. Whoever has compared the files with their digests,
and the stream with the files, knows that this log and the stream are one.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from kledger.contract.errors import LogGap
from ledger.archive.event_file import events_by_position, events_in, events_of
from ledger.backup.manifest import Segment
from ledger.backup.writing import damaged
from ledger.event import StoredEvent


class BackupLog:
    """See `stream.Log`; it ends where the last file does."""

    def __init__(self, directory: Path, files: Sequence[Segment]) -> None:
        self._directory, self._files = directory, files

    @property
    def last(self) -> int:
        """The last position; 0 where there is none."""
        return self._files[-1].last if self._files else 0

    async def read(
        self, start: int = 1, *, follow: bool = False, batch: int = 1_000
    ) -> AsyncGenerator[list[StoredEvent], None]:
        """See `stream.Log.read`. Raises BackupDamaged when a file is another one than the manifest names."""
        assert not follow  # nothing is ever added
        if start > self.last + 1:
            raise LogGap(f"the backup ends at position {self.last}", first=self.last + 1, last=start - 1)
        for file in self._files:
            if file.last < start:
                continue
            rows = await asyncio.to_thread(_rows, self._directory, file)
            for at in range(max(0, start - file.first), len(rows), batch):
                yield events_in(rows.slice(at, batch))


def events_in_order(directory: Path, files: Sequence[Segment]) -> Iterator[list[StoredEvent]]:
    """All events of a backup, in lists. Raises BackupDamaged when a file is another one than the manifest names."""
    for file in files:
        with _read_of(directory, file):
            yield from events_by_position(_content(directory, file), file.events)


def _rows(directory: Path, file: Segment) -> pa.Table:
    """The events of a file as columns. Raises BackupDamaged."""
    with _read_of(directory, file):
        return events_of(_content(directory, file), file.events)


def _content(directory: Path, file: Segment) -> bytes:
    content = (directory / file.file).read_bytes()
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise ValueError("was changed: its SHA-256 is another one")
    return content


@contextmanager
def _read_of(directory: Path, file: Segment) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, pa.ArrowException) as error:
        raise damaged(directory, [f"{file.file} {error}"]) from error

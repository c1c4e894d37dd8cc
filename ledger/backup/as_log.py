"""A backup as a log: its events are read from its files, each of which has to be the one that was named.

So views are folded from a backup while a stream is filled from it. Whoever has compared the files with their digests,
and the stream with the files, knows that this log and the stream are one.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from kledger.contract.errors import LogGap
from ledger.archive.event_file import events_in, events_of
from ledger.backup.manifest import Manifest
from ledger.backup.writing import damaged
from ledger.event import JsonObject, StoredEvent


class BackupFile(NamedTuple):
    """One file of a backup: the events from position `first` to `last`, and the SHA-256 of its bytes."""

    file: str
    first: int
    last: int
    sha256: str


def files_of(manifest: Manifest) -> list[BackupFile]:
    """The files of a backup, by position."""
    return [BackupFile(one.file, one.first, one.last, one.sha256) for one in manifest.segments]


def told(files: Iterable[BackupFile]) -> list[JsonObject]:
    """Serialize files as JSON objects, for another process."""
    return [one._asdict() for one in files]


def read_told(documents: Iterable[JsonObject]) -> list[BackupFile]:
    """Parse the output of `told`."""
    return [BackupFile(**document) for document in documents]


class BackupLog:
    """See `stream.Log`; it ends where the last file does."""

    def __init__(self, directory: Path, files: Iterable[BackupFile]) -> None:
        self._directory, self._files = directory, list(files)

    @property
    def last(self) -> int:
        """The last position; 0 where there is none."""
        return self._files[-1].last if self._files else 0

    async def read(
        self, start: int = 1, *, follow: bool = False, batch: int = 1_000
    ) -> AsyncGenerator[list[StoredEvent], None]:
        """See `stream.Log.read`. Raises BackupDamaged when a file is another one than was named."""
        assert not follow  # nothing is ever added
        if start > self.last + 1:
            raise LogGap(f"the backup ends at position {self.last}", first=self.last + 1, last=start - 1)
        for file in self._files:
            if file.last < start:
                continue
            rows = await asyncio.to_thread(_rows, self._directory, file)
            for at in range(max(0, start - file.first), len(rows), batch):
                yield events_in(rows.slice(at, batch))


def _rows(directory: Path, file: BackupFile) -> pa.Table:
    """The events of a file as columns. Raises BackupDamaged."""
    try:
        content = (directory / file.file).read_bytes()
        if hashlib.sha256(content).hexdigest() != file.sha256:
            raise ValueError("was changed: its SHA-256 is another one")
        rows = events_of(content)
        if len(rows) != file.last - file.first + 1:
            raise ValueError("has another number of events")
    except (OSError, ValueError, pa.ArrowException) as error:
        raise damaged(directory, [f"{file.file} {error}"]) from error
    return rows

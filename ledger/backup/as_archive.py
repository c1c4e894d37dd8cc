"""A backup as an archive: the segments with decoded columns that a node signed whose public key is trusted.

The events in its files were compared with their digests by whoever restores; the columns are believed by their
signature (ledger/archive/columns_manifest.py).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from ledger.archive.event_file import read_leaves
from ledger.archive.events import leaves_digest
from ledger.archive.manifest import NotBelieved
from ledger.archive.segments import Segment as Stretch
from ledger.backup.manifest import Manifest, Segment
from ledger.event import JsonObject, StoredEvent
from ledger.integrity.chain import leaf_hash
from ledger.integrity.signing_keys import VerifyingKey


@dataclass(frozen=True, slots=True)
class BackedUpArchive:
    """See `ledger.archive.archived.Segments`; of a backup in a directory of this machine."""

    directory: Path
    keys: Mapping[str, VerifyingKey]
    files: Mapping[Stretch, Segment] = field(default_factory=dict)

    @classmethod
    def of(cls, directory: Path, manifest: Manifest, key: VerifyingKey) -> BackedUpArchive:
        """The segments of a backup that have columns."""
        listed = manifest.columns or {}
        files = {one.stretch: one for one in manifest.segments if one.stretch.name in listed}
        return cls(directory, {key.id: key}, files)

    @property
    def segments(self) -> list[Stretch]:
        return list(self.files)

    @property
    def last(self) -> int:
        return self.segments[-1].last if self.files else 0

    def at(self, position: int) -> Stretch | None:
        segments = self.segments
        found = bisect_left(segments, position, key=lambda segment: segment.last)
        return segments[found] if found < len(segments) else None

    def is_of(self, event: StoredEvent) -> bool:
        return any(one.last == event.position and one.leaf == leaf_hash(event) for one in self.files.values())

    def events_file(self, segment: Stretch) -> Path:
        return self.directory / self.files[segment].file

    def manifest_of(self, segment: Stretch) -> JsonObject:
        one = self.files[segment]
        try:
            leaves = read_leaves(self.events_file(segment), one.events)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise NotBelieved(one.file, f"it cannot be read: {error}") from error
        return {"sha256": one.sha256, "leaves": leaves_digest(leaves)}

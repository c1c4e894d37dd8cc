"""The archive of a node as it is at one moment: its segments, and what decides whether one is believed."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from ledger.archive.events import read_events_manifest
from ledger.archive.segments import ARCHIVE, EVENTS, Segment, events_file, segments_in
from ledger.event import JsonObject, StoredEvent
from ledger.integrity.chain import leaf_hash
from ledger.integrity.leaves import LeafFile
from ledger.integrity.notary_start import NotaryFiles
from ledger.integrity.signing_keys import VerifyingKey, public_keys


class Segments(Protocol):
    """Segments whose events and columns can be read: those of a node's archive, or of a backup."""

    @property
    def directory(self) -> Path:
        """Where the columns are, in a directory for each segment."""

    @property
    def keys(self) -> Mapping[str, VerifyingKey]:
        """Whose signatures are believed."""

    @property
    def last(self) -> int:
        """The last position in it; 0 where there is none."""

    def at(self, position: int) -> Segment | None:
        """The segment with this position, else the next one after it; None where there is none."""

    def is_of(self, event: StoredEvent) -> bool:
        """Whether this event of the log is the one that is here at its position."""

    def manifest_of(self, segment: Segment) -> JsonObject:
        """`sha256` of the file with a segment's events, and the digest of their `leaves`. Raises NotBelieved."""

    def events_file(self, segment: Segment) -> Path:
        """The file with a segment's events."""


@dataclass(frozen=True, slots=True)
class Archived:
    """The segments in a node's data directory, the leaves of its signed chain, and the public keys of the node."""

    directory: Path
    leaves: LeafFile
    keys: Mapping[str, VerifyingKey] = field(default_factory=dict)
    segments: Sequence[Segment] = ()

    @classmethod
    def of_node(cls, data: Path) -> Archived:
        """The archive in a data directory; one without segments where there is none."""
        files = NotaryFiles.of(data)
        segments = segments_in(data / ARCHIVE / EVENTS)
        return cls(data / ARCHIVE, files.leaves, public_keys(files.keys) if segments else {}, segments)

    @property
    def last(self) -> int:
        """The last position in it; 0 where there is none."""
        return self.segments[-1].last if self.segments else 0

    def is_of(self, event: StoredEvent) -> bool:
        """Whether the signed chain has this event: another log has another archive."""
        return self.leaves.read(event.position, event.position) == [leaf_hash(event)]

    def at(self, position: int) -> Segment | None:
        """The segment with this position, else the next one after it; None where there is none."""
        found = bisect_left(self.segments, position, key=lambda segment: segment.last)
        return self.segments[found] if found < len(self.segments) else None

    def run_from(self, position: int) -> Iterator[Segment]:
        """The segments that follow each other from a position on."""
        while (segment := self.at(position)) is not None and segment.first == position:
            yield segment
            position = segment.last + 1

    def manifest_of(self, segment: Segment) -> JsonObject:
        """The manifest of a segment that is believed, up to its file. Raises NotBelieved."""
        return read_events_manifest(self.directory, segment, self.keys, self.leaves)

    def events_file(self, segment: Segment) -> Path:
        return events_file(self.directory, segment)

    def without(self, segment: Segment) -> Archived:
        """The archive as if it had no such segment."""
        return replace(self, segments=[one for one in self.segments if one != segment])

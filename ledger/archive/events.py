"""Events of a segment: written as the log has them, where their leaves are those that the notary signed.

A segment is believed when a key of this node signed its manifest, the file has the digest that stands in it, and the
leaves in it are those of the notary's chain. They are compared once, when the file was written and read back; from then
on the digest of the file stands for them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa

from ledger.archive.event_file import EVENT_COLUMNS, SegmentWriter, events_at, events_of, file_digest, read_segment
from ledger.archive.manifest import NotBelieved, checked_content, read_manifest, write_manifest
from ledger.archive.segments import EVENT_FILE, EVENTS, Segment, whole_directory
from ledger.event import JsonObject, StoredEvent
from ledger.integrity.chain import leaf_hashes
from ledger.integrity.leaves import LeafFile
from ledger.integrity.signing_keys import SigningKeys, VerifyingKey
from ledger.runtime.same_file import same_file


def leaves_digest(leaves: Sequence[bytes]) -> str:
    """One digest for the leaves of a segment, in hexadecimal."""
    return hashlib.sha256(b"".join(leaves)).hexdigest()


def write_events(archive: Path, events: list[StoredEvent], signed: Sequence[bytes], keys: SigningKeys) -> Segment:
    """Write consecutive events as a segment; `signed` are their leaves in the notary's chain.

    Raises NotBelieved when the events are others than those, or are read back as others; OSError, UnsafeKeyFile.
    """
    segment = Segment(events[0].position, events[-1].position)
    directory = archive / EVENTS / segment.name
    leaves = leaf_hashes(events)
    if leaves != list(signed):
        raise NotBelieved(f"{EVENTS}/{segment.name}", "the log has other events there than those that were signed")
    with whole_directory(directory) as draft:
        writer = SegmentWriter(draft / EVENT_FILE)
        try:
            for rows in _by_organisation(zip(events, leaves, strict=True)):
                writer.separate(len(rows))
                for event, leaf in rows:
                    writer.add(event, leaf)
            writer.close()
        except BaseException:
            writer.abandon()
            raise
        if not _reads_back(draft / EVENT_FILE, leaves):
            raise NotBelieved(f"{EVENTS}/{segment.name}/{EVENT_FILE}", "it was read back with other events")
        write_manifest(draft, _about(segment, file_digest(draft / EVENT_FILE), leaves), keys)
    return segment


def _by_organisation(events: Iterable[tuple[StoredEvent, bytes]]) -> list[list[tuple[StoredEvent, bytes]]]:
    """Events with their leaves, those of each organisation for themselves; the first in the alphabet is the first."""
    parts: dict[str, list[tuple[StoredEvent, bytes]]] = {}
    for each in events:
        parts.setdefault(each[0].subject.partition(".")[2].partition(".")[0], []).append(each)
    return [parts[organisation] for organisation in sorted(parts)]


def adopt_events(
    archive: Path, segment: Segment, file: Path, sha256: str, leaves: Sequence[bytes], keys: SigningKeys
) -> None:
    """Make a segment of an event file with this digest, whose events were seen to be those of the log.

    Raises OSError, UnsafeKeyFile.
    """
    with whole_directory(archive / EVENTS / segment.name, over=True) as draft:
        same_file(file, draft / EVENT_FILE)
        write_manifest(draft, _about(segment, sha256, leaves), keys)


def _about(segment: Segment, sha256: str, leaves: Sequence[bytes]) -> JsonObject:
    """What the manifest of a segment's events says."""
    return {
        "part": EVENTS,
        "first": segment.first,
        "last": segment.last,
        "sha256": sha256,
        "leaves": leaves_digest(leaves),
    }


def _reads_back(path: Path, leaves: Sequence[bytes]) -> bool:
    """Whether the events in a file have these leaves, in lists so that they are not in memory twice."""
    at = 0
    for kept in read_segment(path, len(leaves)):
        if leaf_hashes(each.event for each in kept) != leaves[at : at + len(kept)]:
            return False
        at += len(kept)
    return at == len(leaves)


def read_events_manifest(
    archive: Path, segment: Segment, keys: Mapping[str, VerifyingKey], leaves: LeafFile
) -> JsonObject:
    """The manifest of a segment whose leaves are those of the chain. Raises NotBelieved."""
    directory = archive / EVENTS / segment.name
    manifest = read_manifest(directory, keys)
    if (manifest.get("part"), manifest.get("first"), manifest.get("last")) != (EVENTS, *segment):
        raise NotBelieved(f"{EVENTS}/{segment.name}", "its manifest is that of another one")
    if leaves_digest(leaves.read(*segment)) != manifest.get("leaves"):
        raise NotBelieved(f"{EVENTS}/{segment.name}", "its leaves are not those of the signed chain")
    return manifest


class SegmentEvents:
    """The events of a segment as columns (see event_file.py), checked with its manifest.

    What nobody asks for is not unpacked: of a segment that has columns, hardly a body is. Raises NotBelieved.
    """

    def __init__(self, file: Path, segment: Segment, manifest: JsonObject) -> None:
        self.segment, self._file = segment, file
        self._content = checked_content(file.parent, file.name, manifest["sha256"])
        self.times = self._read(("position", "stored_ns"))
        """The two columns that say where each event stands and when the log stored it."""

    @cached_property
    def rows(self) -> pa.Table:
        """All columns but the leaves. Raises NotBelieved."""
        return self._read(EVENT_COLUMNS)

    def at(self, places: np.ndarray) -> pa.Table:
        """The rows at these places, from 0 and ascending, without keeping the others. Raises NotBelieved."""
        if "rows" in self.__dict__:
            return self.rows.take(places)
        return self._believed(lambda: events_at(self._content, self._count, self.segment.first + places))

    def _read(self, columns: Sequence[str]) -> pa.Table:
        return self._believed(lambda: events_of(self._content, self._count, columns))

    @property
    def _count(self) -> int:
        return self.segment.last - self.segment.first + 1

    def _believed(self, read: Callable[[], pa.Table]) -> pa.Table:
        try:
            return read()
        except (pa.ArrowException, ValueError, OSError) as error:
            raise self._not_believed(f"it cannot be read: {error}") from error

    def _not_believed(self, reason: str) -> NotBelieved:
        return NotBelieved("/".join(self._file.parts[-3:]), reason)

"""Segments of a node's archive as files of a backup: their bytes are taken as they are, for the format is the same.

A segment is taken when the archive believes it (ledger/archive/events.py) and its file still has the digest that was
signed. Any other is left where it is, and its events are read from the log, as if there were no archive.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import structlog

from kledger.contract.errors import BackupMismatch
from ledger.archive.archived import Archived
from ledger.archive.event_file import file_digest
from ledger.archive.manifest import NotBelieved
from ledger.archive.segments import EVENT_FILE, EVENTS, events_file
from ledger.archive.segments import Segment as Stretch
from ledger.backup.manifest import Manifest, Segment, save, segment_name
from ledger.backup.place import Place
from ledger.backup.witnesses import Witness, extend_past
from ledger.integrity.chain import Chain, chain_head

log = structlog.get_logger(__name__)


class Change(NamedTuple):
    """Segments to stand in a backup for its files number `first` to `end` (not included), or behind the last one."""

    first: int
    end: int
    segments: list[Stretch]


def next_change(manifest: Manifest, archived: Archived) -> Change | None:
    """The first place in a backup where the archive serves it better than what it has; None where there is none.

    Segments take the place of files that begin and end at the same positions, or go on behind the backup's end. They do
    so only where the backup has fewer files afterwards than if what is new were written beside those: the small files
    of many runs become one, and no large one is written again for nothing.
    """
    files = manifest.segments
    after = {one.last: at for at, one in enumerate(files, 1)}
    at = 0
    while at < len(files):
        taken: list[Stretch] = []
        for segment in archived.run_from(files[at].first):
            taken.append(segment)
            beyond = segment.last > manifest.position
            if end := len(files) if beyond else after.get(segment.last, 0):
                if len(taken) < end - at + beyond:
                    return Change(at, end, taken)
                at = end - 1  # they begin and end together, and nothing is won
                break
        at += 1
    following = next(archived.run_from(manifest.position + 1), None)
    return Change(len(files), len(files), [following]) if following else None


def carried_out(
    place: Place, manifest: Manifest, change: Change, archived: Archived, witness: Witness | None
) -> Manifest:
    """The manifest after a change, saved; the files that are not listed any more are still there.

    Raises Unfit (a segment is not believed: nothing was changed), BackupMismatch, OSError.
    """
    files = manifest.segments
    head = files[change.first - 1].head if change.first else Chain.empty().head
    chain, fresh = manifest.chain, []
    for stretch in change.segments:
        one, leaves = _taken(place, stretch, archived, head)
        fresh.append(one)
        if stretch.first <= manifest.position <= stretch.last:
            _check_same(place, manifest.position, manifest.chain.head, head, leaves, stretch)
        if stretch.last > chain.position:
            chain = extend_past(chain, leaves[chain.position - stretch.first + 1 :], witness)
        head = one.head
    changed = manifest.with_segments((*files[: change.first], *fresh, *files[change.end :]), chain)
    if change.end < len(files) and head != files[change.end - 1].head:
        raise _others(place, fresh[0].first, fresh[-1].last)
    save(place, changed)
    return changed


class Unfit(Exception):
    """A segment of the archive that a backup does not take."""

    def __init__(self, segment: Stretch) -> None:
        super().__init__(segment.name)
        self.segment = segment


def _taken(place: Place, stretch: Stretch, archived: Archived, head: bytes) -> tuple[Segment, list[bytes]]:
    """A segment as a file of the backup, and its leaves; `head` is that of the chain before it."""
    name, source = segment_name(*stretch), events_file(archived.directory, stretch)
    try:
        signed = archived.manifest_of(stretch)
        if source.is_symlink():
            raise NotBelieved(f"{EVENTS}/{stretch.name}/{EVENT_FILE}", "it is a link")
        draft = place.same(source, name)
        digest, size = file_digest(draft), draft.stat().st_size
        if digest != signed["sha256"]:
            raise NotBelieved(f"{EVENTS}/{stretch.name}/{EVENT_FILE}", "its bytes are not those that were signed")
        place.put(draft, name)
    except (NotBelieved, FileNotFoundError) as error:  # the archive may have taken it away meanwhile
        log.warning("a segment of the archive is not backed up, its events are", segment=stretch.name, why=str(error))
        raise Unfit(stretch) from error
    leaves = archived.leaves.read(*stretch)
    return Segment(name, *stretch, size, digest, chain_head(head, leaves), leaves[-1]), leaves


def _check_same(
    place: Place, position: int, expected: bytes, head: bytes, leaves: Sequence[bytes], stretch: Stretch
) -> None:
    if chain_head(head, leaves[: position - stretch.first + 1]) != expected:
        raise _others(place, stretch.first, position)


def _others(place: Place, first: int, last: int) -> BackupMismatch:
    return BackupMismatch(
        f"the backup in {place} is not one of this node: its archive has other events from position {first} to {last}. "
        "Back up into a new directory; and where it should be this node's, run kledger audit"
    )

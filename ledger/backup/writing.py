"""Backup writer: adds what is new in the log to a backup, in files that appear whole or not at all.

What the node has archived is taken from there, file by file (ledger/backup/archived.py); what comes behind it is read
from the log. A file appears under its name, and then the manifest lists it. An interruption at any point leaves the
backup as it was, and the next run resumes from there.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from kledger.contract.errors import BackupDamaged, BackupMismatch, LedgerError, LogGap, ServiceFailed
from ledger.archive.archived import Archived
from ledger.archive.event_file import SegmentWriter, file_digest
from ledger.archive.segments import SEGMENT_BYTES, SEGMENT_EVENTS
from ledger.backup.archived import Unfit, carried_out, next_change
from ledger.backup.columns import keep_columns
from ledger.backup.manifest import Manifest, Segment, remove_left_over, save, segment_name, writing_to
from ledger.backup.place import EVENTS, KEYS, Place, Where, place_of
from ledger.backup.witnesses import SignedLog, Witness, extend_past
from ledger.event import StoredEvent
from ledger.integrity.chain import leaf_hash, leaf_hashes
from ledger.progress import Progress, silent
from ledger.stream import Ledger, event_at

_READ_EVENTS = 1_000

KeepKeys = Callable[[Place], Awaitable[None]]
"""Keeps what the events of persons are read with."""


@dataclass(frozen=True, slots=True)
class BackedUp:
    """The result of one run: the backup's end, and the numbers of added events and files."""

    directory: str
    position: int
    head: str
    root: str
    added: int
    files: int
    segments: int
    signed: int
    """The position of the signed checkpoint that matches it, 0 without one."""
    columns: int | None
    """The number of its files whose decoded columns it has as well; None where it keeps none."""
    seconds: float


async def back_up(
    ledger: Ledger,
    where: Where,
    progress: Progress = silent,
    *,
    signed: SignedLog | None = None,
    archived: Archived | None = None,
    segment_events: int = SEGMENT_EVENTS,
    keep_keys: KeepKeys | None = None,
    tokens: bool | None = None,
    columns: bool | None = None,
) -> BackedUp:
    """Update the backup in a place to the current head of the log, with the files of the node's archive if it has one.

    `keep_keys` is called before any event is added, and no event behind the head of before is: so the keys in a backup
    are at least as new as its events, wherever a run is cut. `tokens` is whether the node asks for tokens. `columns` is
    whether the archive's decoded columns are kept as well; None leaves that as it was. The events must match the
    `signed` checkpoints; the last one is stored in the manifest. Raises BackupMismatch (a backup of another stream, or
    no backup), BackupDamaged, InvalidPayload, ServiceFailed (it cannot be written: no space), ObjectStoreFailed,
    LogGap, BrokerUnavailable.
    """
    started, place = time.monotonic(), place_of(where)
    with writing_to(place) as manifest:
        check_files_are_there(place, manifest)
        before = manifest
        head = (await ledger.head()).position
        witness = signed.latest(head) if signed else None
        try:
            if head >= manifest.position:  # else the reading tells that the log was cut
                await _check_is_of_log(ledger, place, manifest)
                if tokens is not None and manifest.tokens is not tokens:
                    manifest = manifest.with_tokens(tokens)
                    save(place, manifest)
            if columns is not None and columns is not (manifest.columns is not None):
                manifest = manifest.with_columns({} if columns else None)
                save(place, manifest)
            if keep_keys is not None and head > manifest.position:
                await keep_keys(place)
                manifest = manifest.with_beside(KEYS)
                save(place, manifest)
            is_of_log = archived is not None and await _is_archive_of_log(ledger, manifest, archived, head)
            if archived is not None and is_of_log:
                manifest = await _from_archive(place, manifest, archived, witness, head, progress)
            manifest = await _from_log(ledger, BackupWriter(place, manifest, witness, segment_events), head, progress)
            if witness is not None and _is_newer(witness, before, manifest):
                manifest = manifest.with_signed(witness)
                save(place, manifest)
            if archived is not None and is_of_log and manifest.columns is not None:
                manifest = await asyncio.to_thread(keep_columns, place, manifest, archived)
            remove_left_over(place, manifest)
        except OSError as error:
            raise ServiceFailed(
                f"the backup in {place} cannot be written on ({error.strerror or error}); what it had is whole. "
                "Make room, and run it again"
            ) from error
    return BackedUp(
        str(place),
        manifest.position,
        manifest.chain.head.hex(),
        manifest.chain.root().hex(),
        manifest.position - before.position,
        len({one.file for one in manifest.segments} - {one.file for one in before.segments}),
        len(manifest.segments),
        manifest.signed.position if manifest.signed else 0,
        None if manifest.columns is None else len(manifest.columns),
        round(time.monotonic() - started, 3),
    )


async def _check_is_of_log(ledger: Ledger, place: Place, manifest: Manifest) -> None:
    """Raise BackupMismatch where the backup is not one of this log, LogGap where that cannot be told."""
    if not manifest.position:
        return
    try:
        event = await event_at(ledger, manifest.position)
    except LogGap as gap:
        raise _gap_of(place, manifest, gap) from gap
    if event is not None:
        _check_same(place, manifest, event)


async def _is_archive_of_log(ledger: Ledger, manifest: Manifest, archived: Archived, head: int) -> bool:
    """Whether the archive is that of this log; one without segments is not."""
    if not archived.last or head < max(archived.last, manifest.position):
        return False
    try:
        last = await event_at(ledger, archived.last)
    except LogGap:
        return False  # whoever reads on from there says what is missing
    return last is not None and archived.is_of(last)


async def _from_archive(
    place: Place,
    manifest: Manifest,
    archived: Archived,
    witness: Witness | None,
    head: int,
    progress: Progress,
) -> Manifest:
    """Take from the archive what serves the backup; the backup's manifest then."""
    started, before = time.monotonic(), manifest.position
    while change := next_change(manifest, archived):
        try:
            manifest = await asyncio.to_thread(carried_out, place, manifest, change, archived, witness)
        except Unfit as unfit:
            archived = archived.without(unfit.segment)
            continue
        done = manifest.position - before
        progress(manifest.position, max(head, manifest.position), done / max(time.monotonic() - started, 1e-9))
    return manifest


async def _from_log(ledger: Ledger, writer: BackupWriter, head: int, progress: Progress) -> Manifest:
    """Write what the log has behind the backup's end; the backup's manifest then, which has what came before a failure.

    Raises BackupMismatch, LogGap, OSError.
    """
    try:
        try:
            await _append(ledger, writer, head, progress)
        finally:
            manifest = writer.close()
    except OSError:
        writer.abandon()
        raise
    return manifest


async def _append(ledger: Ledger, writer: BackupWriter, head: int, progress: Progress) -> None:
    started, reached, place, before = time.monotonic(), head, writer.place, writer.manifest
    try:
        async with contextlib.aclosing(ledger.read(max(1, before.position), batch=_READ_EVENTS)) as batches:
            async for events in batches:
                reached = max(reached, events[-1].position)
                if events[0].position == before.position:
                    _check_same(place, before, events[0])
                    events = events[1:]
                writer.add([event for event in events if event.position <= head])
                done = writer.position
                seconds = max(time.monotonic() - started, 1e-9)
                progress(done, max(head, done), (done - before.position) / seconds)
                if done >= head:
                    break
    except LogGap as gap:
        raise _gap_of(place, before, gap) from gap
    _check_reaches(place, before, reached)


def _is_newer(witness: Witness, before: Manifest, now: Manifest) -> bool:
    """Whether a signed checkpoint covers more of the backup than its present one; new events were compared with it."""
    if witness.position == now.position:
        return now.signed != witness and witness.checkpoint.fits(now.chain)
    return before.position < witness.position < now.position


class BackupWriter:
    """Appends events to a backup; the caller alone writes to its place."""

    def __init__(
        self,
        where: Where,
        manifest: Manifest,
        witness: Witness | None = None,
        segment_events: int = SEGMENT_EVENTS,
    ) -> None:
        self.place, self.manifest = place_of(where), manifest
        self._witness, self._most = witness, segment_events
        self._chain = manifest.chain
        self._segment: SegmentWriter | None = None
        self._last_leaf = b""

    @property
    def position(self) -> int:
        """The last added position; it may not be on disk yet."""
        return self._chain.position

    def add(self, events: Sequence[StoredEvent]) -> None:
        """Add the next events. Raises BackupMismatch when they do not match a signed checkpoint, LogGap."""
        if not events:
            return
        if events[0].position != self.position + 1 or events[-1].position - events[0].position != len(events) - 1:
            raise LogGap(
                f"the backup is at position {self.position}, and was to go on with {events[0].position}",
                first=self.position + 1,
                last=events[0].position - 1,
            )
        leaves = leaf_hashes(events)
        while events:
            if self._segment is None:
                self._segment = SegmentWriter(self.place.draft(f"{EVENTS}/next.parquet"))
            room = self._most - self._segment.events
            try:
                self._chain = extend_past(self._chain, leaves[:room], self._witness)
                for event, leaf in zip(events[:room], leaves[:room], strict=True):
                    self._segment.add(event, leaf)
            except (BackupMismatch, OSError):  # the current file is not trustworthy, or cannot be written
                self.abandon()
                raise
            self._last_leaf = leaves[:room][-1]
            events, leaves = events[room:], leaves[room:]
            if self._segment.events >= self._most or self._segment.size >= SEGMENT_BYTES:
                self._finish()

    def close(self) -> Manifest:
        """Finish the current file; returns the manifest of everything on disk."""
        if self._segment is not None:
            self._finish()
        return self.manifest

    def abandon(self) -> None:
        """Discard the current file."""
        segment, self._segment = self._segment, None
        if segment is not None:
            with contextlib.suppress(OSError):
                segment.abandon()

    def _finish(self) -> None:
        assert self._segment is not None  # called only with a current file
        writer = self._segment
        try:
            writer.close()
        except OSError:
            self.abandon()
            raise
        self._segment = None
        name = segment_name(self.manifest.position + 1, self._chain.position)
        digest, size = file_digest(writer.path), writer.path.stat().st_size
        self.place.put(writer.path, name)
        segment = Segment(
            name, self.manifest.position + 1, self._chain.position, size, digest, self._chain.head, self._last_leaf
        )
        self.manifest = self.manifest.with_segment(segment, self._chain)
        save(self.place, self.manifest)


def check_files_are_there(where: Where, manifest: Manifest) -> None:
    """Raise BackupDamaged when a file is missing or has another size; the content is not checked."""
    place = place_of(where)
    sizes, problems = place.sizes(), []
    for segment in manifest.segments:
        size = sizes.get(segment.file)
        if size is None:
            problems.append(f"{segment.file} is missing")
        elif size != segment.size:
            problems.append(f"{segment.file} has {size:,} bytes and had {segment.size:,}")
    if problems:
        raise damaged(place, problems)


def damaged(where: Where, problems: Sequence[str]) -> BackupDamaged:
    """The error for a damaged backup, with its first problems."""
    more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
    return BackupDamaged(
        f"the backup in {place_of(where)} is damaged: {'; '.join(problems[:3])}{more}. Take these files from another "
        "copy of it, or back up into a new directory",
        problems=list(problems),
    )


def _check_same(place: Place, manifest: Manifest, event: StoredEvent) -> None:
    if leaf_hash(event) != manifest.segments[-1].leaf:
        raise BackupMismatch(
            f"the backup in {place} is not one of this stream: the event at position {event.position} is another "
            "one there. Back up into a new directory; and where it should be this stream's, run kledger audit"
        )


def _check_reaches(place: Place, manifest: Manifest, head: int) -> None:
    if head < manifest.position:
        raise BackupMismatch(
            f"the backup in {place} reaches position {manifest.position} and the stream ends at {head}: it was "
            "cut, or is another one (as a copy that was restored is once it has events of its own). Keep this backup: "
            "kledger repair or kledger restore-backup bring the stream back from it; back up another stream into a "
            "directory of its own"
        )


def _gap_of(place: Place, manifest: Manifest, gap: LogGap) -> LedgerError:
    """The error for a stream with a gap; a BackupMismatch when the backup has the missing events."""
    first = gap.details.get("first")
    if isinstance(first, int) and first <= manifest.position:
        return BackupMismatch(
            f"the stream has lost events that the backup in {place} has (from position {first} on), or is another "
            "stream: keep this backup, bring the events back with kledger repair, or back up into a new directory",
            first=first,
            last=gap.details.get("last"),
        )
    return gap

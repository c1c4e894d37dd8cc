"""Backup verification: reads every byte of every file and computes every hash again."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from kledger.contract.errors import BackupDamaged, BackupMismatch
from ledger.archive.event_file import BackupEvent, file_digest, read_segment
from ledger.archive.events import leaves_digest
from ledger.backup.columns import problems_of_columns
from ledger.backup.keys import kept_keys
from ledger.backup.manifest import Manifest, Segment, load
from ledger.backup.place import KEYS, Place, Where, place_of
from ledger.backup.sessions import check_sessions
from ledger.backup.witnesses import Witness, extend_past
from ledger.backup.writing import damaged
from ledger.event import JsonObject
from ledger.integrity.chain import Chain, chain_head, leaf_hashes
from ledger.integrity.signing_keys import VerifyingKey
from ledger.progress import Progress, silent
from ledger.wire.subjects import STREAM_SUBJECTS

_SUBJECT = re.compile(rf"{re.escape(STREAM_SUBJECTS.removesuffix('>'))}[^ \t\r\n]+")
"""What the stream of a log takes."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a verification: the end of the backup, and each problem with its file."""

    directory: str
    position: int
    head: str
    root: str
    segments: int
    columns: int | None
    """As of `ledger.backup.writing.BackedUp`."""
    signed: JsonObject | None
    """The signed checkpoint that matches the events: `position`, `time`, `key`, …; None without one."""
    problems: list[str]
    seconds: float


def check_backup(
    where: Where, progress: Progress = silent, *, key: VerifyingKey | None = None, columns: bool = True
) -> Checked:
    """Read a whole backup and compare it with its manifest, and its chain with the signed checkpoint.

    With `key`, the checkpoint must be signed with this key. Without `columns` those that are decoded are left out: they
    follow from the events. Raises BackupDamaged when the manifest itself is missing or damaged, so that no file can be
    verified. Raises BackupMismatch when intact files do not match the checkpoint, or it was signed with another key.
    """
    started, place = time.monotonic(), place_of(where)
    manifest = load(place)
    witness = manifest.signed
    if key is not None and (witness is None or witness.key.id != key.id):
        raise _other_key(place, witness, key)
    problems: list[str] = []
    chain, whole = Chain.empty(), True
    before = chain.head
    of_columns = dict[str, str]()
    for segment in manifest.segments:
        try:
            leaves = _check(place, segment)
            longer = extend_past(chain, leaves, witness) if whole else None
            if (name := segment.stretch.name) in (manifest.columns or ()):
                of_columns[name] = leaves_digest(leaves)
            _check_end(segment, leaves, longer.head if longer is not None else chain_head(before, leaves))
        except (OSError, ValueError, pa.ArrowException) as error:
            problems.append(f"{segment.file} {_described(error)}")
            whole = False
        else:
            chain = longer or chain
        before = segment.head  # from the manifest, so that a damaged file does not affect the next
        progress(segment.last, manifest.position, segment.last / max(time.monotonic() - started, 1e-9))
    if whole and chain != manifest.chain:
        problems.append("the manifest's chain is not the one that its files make")
    there = place.sizes()
    gone = (name for name in manifest.beside if name not in there)
    problems += [f"{name} is missing: {_needed_for(name)} cannot be read without it" for name in gone]
    for check in (kept_keys, check_sessions):
        try:
            check(place)
        except BackupDamaged as error:
            problems.append(error.message)
    if columns:
        problems += problems_of_columns(place, manifest, of_columns)
    return Checked(
        str(place),
        manifest.position,
        manifest.chain.head.hex(),
        manifest.chain.root().hex(),
        len(manifest.segments),
        None if manifest.columns is None else len(manifest.columns),
        witness.to_json() if witness and whole else None,
        problems,
        round(time.monotonic() - started, 3),
    )


def _other_key(place: Place, witness: Witness | None, key: VerifyingKey) -> BackupMismatch:
    if witness is None:
        return BackupMismatch(
            f"the backup in {place} is not signed, so the key {key.id} vouches for none of it: run kledger backup once "
            "the node has signed, or leave --key out"
        )
    return BackupMismatch(
        f"the backup in {place} is signed with the key {witness.key.id}, not with the key {key.id}: give the public "
        "key of the node that wrote to it last (kledger key show), which is another one after kledger key rotate, and "
        "on a node that was restored"
    )


def _needed_for(name: str) -> str:
    """What cannot be read without a file beside the events."""
    return "what persons said" if name == KEYS else "the words of sessions"


def intact(where: Where, progress: Progress = silent, *, key: VerifyingKey | None = None) -> Manifest:
    """Verify all of a backup but its columns, and return its manifest. Raises BackupDamaged, BackupMismatch."""
    checked = check_backup(where, progress, key=key, columns=False)
    if checked.problems:
        raise damaged(where, checked.problems)
    return load(where)


async def found_intact(where: Where, progress: Progress = silent, *, key: VerifyingKey | None = None) -> Manifest:
    """`intact` on a thread, which ends behind the file at hand when this is cancelled."""
    cancelled = threading.Event()

    def going_on(done: int, total: int, rate: float) -> None:
        if cancelled.is_set():
            raise asyncio.CancelledError  # nobody takes it
        progress(done, total, rate)

    try:
        return await asyncio.to_thread(intact, where, going_on, key=key)
    except asyncio.CancelledError:
        cancelled.set()
        raise


def read_backup(directory: Path) -> Iterator[list[BackupEvent]]:
    """The events of a backup, in lists. Raises BackupDamaged."""
    for segment in load(directory).segments:
        try:
            yield from read_segment(directory / segment.file, segment.events)
        except (OSError, ValueError, pa.ArrowException) as error:
            raise damaged(directory, [f"{segment.file} {_described(error)}"]) from error


def _check(place: Place, segment: Segment) -> list[bytes]:
    """The leaves of one file. Raises OSError, ValueError, pyarrow.ArrowException."""
    leaves: list[bytes] = []
    position = segment.first - 1
    with place.local(segment.file) as path:
        if (there := path.stat().st_size) != segment.size:
            raise ValueError(f"has {there:,} bytes and had {segment.size:,}")
        if file_digest(path) != segment.sha256:
            raise ValueError("was changed: its SHA-256 is another one")
        for batch in read_segment(path, segment.events):
            events, stated = zip(*batch, strict=True)
            computed = leaf_hashes(events)
            for expected, event in enumerate(events, position + 1):
                if event.position != expected:
                    raise ValueError(f"has position {event.position} in the place of {expected}")
                if not _SUBJECT.fullmatch(event.subject):  # a restore would publish it, as the broker's administrator
                    raise ValueError(f"has the subject {event.subject[:80]!r} at position {expected}, as no log has")
            if computed != list(stated):
                other = next(at for at, pair in enumerate(zip(computed, stated, strict=True)) if pair[0] != pair[1])
                raise ValueError(f"holds another event at position {events[other].position} than its leaf says")
            position = events[-1].position
            leaves += computed
    if position != segment.last:
        raise ValueError(f"ends at position {position} and not at {segment.last}")
    return leaves


def _check_end(segment: Segment, leaves: list[bytes], head: bytes) -> None:
    if leaves[-1] != segment.leaf or head != segment.head:
        raise ValueError(f"ends at position {segment.last} with another chain than the manifest says")


def _described(error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "is missing"
    if isinstance(error, OSError) and error.strerror:
        return f"cannot be read ({error.strerror})"
    return str(error)

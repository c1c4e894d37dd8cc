"""Backup brought from an object store: its files in a directory of this machine, where it is restored from."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import structlog

from kledger.contract.errors import BackupDamaged, BackupMismatch, BrokerUnavailable, LedgerError, ObjectStoreFailed
from ledger.archive.event_file import file_digest
from ledger.backup.address import is_in_store
from ledger.backup.columns import listed_files
from ledger.backup.manifest import load, save
from ledger.backup.opening import opened
from ledger.backup.place import BESIDE, EVENTS, Directory, Place
from ledger.backup.sessions import WORDS
from ledger.backup.writing import damaged
from ledger.progress import Progress, silent

log = structlog.get_logger(__name__)

FETCHED = "fetched-backup"
"""Where it is in the data directory that it is restored into, until the restore is done."""


@contextmanager
def brought_here(
    where: str, data: Path | None, progress: Progress = silent, *, columns: bool = False
) -> Iterator[Path]:
    """A backup as a directory: that at the address itself, or what was fetched from an object store.

    Where `data` is given, it is fetched into that directory, and removed again in the end. It stays where the store or
    the broker went away, or the process was killed: what is there is not fetched a second time. Decoded columns are
    brought with `columns` alone. Raises InvalidPayload, BackupDamaged, ObjectStoreFailed, OSError.
    """
    if not is_in_store(where):
        yield Path(where)
        return
    if data is None:
        with tempfile.TemporaryDirectory(prefix="kledger-restore-") as scratch, opened(where) as place:
            fetch(place, Path(scratch), progress, columns=columns)
            yield Path(scratch)
        return
    directory = data / FETCHED
    try:
        with opened(where) as place:
            fetch(place, directory, progress, columns=columns)
        yield directory
    except LedgerError as error:
        if not isinstance(error, BrokerUnavailable | ObjectStoreFailed):
            shutil.rmtree(directory, ignore_errors=True)
        raise
    shutil.rmtree(directory)


def fetch(place: Place, directory: Path, progress: Progress = silent, *, columns: bool = False) -> None:
    """Bring a backup here, file by file; those that are here already are not fetched again.

    Raises BackupDamaged when a file is missing or is another one than the manifest says, BackupMismatch when the backup
    is written to meanwhile, ObjectStoreFailed, OSError.
    """
    started, here, manifest = time.monotonic(), Directory(directory), load(place)
    directory.parent.mkdir(parents=True, exist_ok=True)
    for folder in (directory, directory / EVENTS):
        folder.mkdir(exist_ok=True, mode=0o700)
    for segment in manifest.segments:
        path = directory / segment.file
        if not _is_here(path, segment.sha256):
            try:
                _bring(place, here, segment.file)
            except FileNotFoundError as error:
                raise damaged(place, [f"{segment.file} is missing"]) from error
            if file_digest(path) != segment.sha256:
                path.unlink()
                raise damaged(place, [f"{segment.file} was changed: its SHA-256 is another one"])
        progress(segment.last, manifest.position, segment.last / max(time.monotonic() - started, 1e-9))
    manifest = manifest.with_columns(columns_here(place, here, manifest.columns or {}) if columns else None)
    try:
        for name in place.sizes():
            if name in BESIDE or WORDS.fullmatch(name):
                _bring(place, here, name)
    except FileNotFoundError as error:
        raise BackupMismatch(f"the backup in {place} was written to while it was fetched: run it again") from error
    save(here, manifest)  # as it was when the files were chosen


def columns_here(place: Place, here: Directory, columns: Mapping[str, str]) -> dict[str, str]:
    """Bring those of these decoded columns here that are whole; their digests, by the name of the segment."""
    whole: dict[str, str] = {}
    for segment, digest in columns.items():
        try:
            for name, expected in listed_files(place, segment, digest):
                path = here.path / name
                if not _is_here(path, expected):
                    _bring(place, here, name)
                if not _is_here(path, expected):
                    raise BackupDamaged(f"{name} was changed: its SHA-256 is another one")
        except (BackupDamaged, FileNotFoundError, ObjectStoreFailed) as error:
            log.warning("columns of the backup are left out", segment=segment, why=str(error))
        else:
            whole[segment] = digest
    return whole


def _is_here(path: Path, sha256: str) -> bool:
    return path.is_file() and file_digest(path) == sha256


def _bring(place: Place, here: Directory, name: str) -> None:
    with place.local(name) as file:
        here.put(here.same(file, name), name)

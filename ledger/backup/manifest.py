"""Backup manifest: one JSON file with a backup's files, its chain and its signed checkpoint, replaced atomically.

It has its own SHA-256 over its exact bytes, so that a damaged manifest is never taken for another backup.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import orjson

from kledger.contract.errors import BackupDamaged, BackupMismatch, InvalidPayload
from ledger.backup.witnesses import Witness
from ledger.broker.server_config import write_private
from ledger.event import JsonObject
from ledger.integrity.chain import HASH_BYTES, Chain
from ledger.runtime.whole_file import check_directory_place

FORMAT = "kledger-backup-1"
NAME = "manifest.json"
EVENTS = "events"
_FILE = re.compile(r"\d{15}-\d{15}\.parquet")


@dataclass(frozen=True, slots=True)
class Segment:
    """One file: positions `first` to `last`, the chain's head after it, and its last leaf."""

    file: str
    first: int
    last: int
    size: int
    sha256: str
    head: bytes
    leaf: bytes


@dataclass(frozen=True, slots=True)
class Manifest:
    """A backup up to `chain.position`; `signed` is the last signed checkpoint of its events, if any."""

    created: str
    updated: str
    chain: Chain
    segments: tuple[Segment, ...] = ()
    signed: Witness | None = None

    @property
    def position(self) -> int:
        return self.chain.position

    def with_segment(self, segment: Segment, chain: Chain) -> Manifest:
        """The manifest with one more file."""
        return replace(self, updated=_now(), chain=chain, segments=(*self.segments, segment))

    def with_signed(self, signed: Witness) -> Manifest:
        """The manifest with a later signed checkpoint."""
        return replace(self, updated=_now(), signed=signed)


def new_manifest() -> Manifest:
    """The manifest of an empty backup."""
    now = _now()
    return Manifest(now, now, Chain.empty())


def segment_path(directory: Path, first: int, last: int) -> Path:
    """The path of the file for these positions; names sort by position."""
    return directory / EVENTS / f"{first:015d}-{last:015d}.parquet"


def load(directory: Path) -> Manifest:
    """Load the manifest of a backup. Raises BackupDamaged when it is missing, changed or truncated."""
    path = directory / NAME
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise BackupDamaged(
            f"there is no backup in {directory}: {path} cannot be read ({error.strerror or error})"
        ) from error
    try:
        document = orjson.loads(raw)
        content = document["backup"]
        if _serialized(content) != raw:
            raise ValueError("it is not what was written")
        if content["format"] != FORMAT:
            raise ValueError(f"its format is {content['format']!r}, this program reads {FORMAT}")
        manifest = _from_json(content)
        _check_order(manifest)
    except (KeyError, TypeError, ValueError) as error:
        raise BackupDamaged(
            f"{path} is damaged ({error}): take this file from another copy of the backup, or back up into a new "
            "directory"
        ) from error
    return manifest


def save(directory: Path, manifest: Manifest) -> None:
    """Replace the manifest atomically and durably."""
    write_private(directory / NAME, _serialized(_to_json(manifest)))
    sync_directory(directory)


def sync_directory(directory: Path) -> None:
    """Sync created and renamed directory entries to disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def writing_to(directory: Path) -> Iterator[Manifest]:
    """Lock a directory for one writer; yields its manifest, a new one if it is empty.

    Raises BackupMismatch (it has other files, or another writer), BackupDamaged, InvalidPayload (it cannot be created).
    """
    check_directory_place(directory)
    new = not directory.exists()
    try:
        _check_ours(directory)
        (directory / EVENTS).mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = os.fdopen(os.open(directory / "lock", os.O_WRONLY | os.O_CREAT, 0o600), "w")
    except OSError as error:
        raise InvalidPayload(
            f"the directory {directory} cannot be written ({error.strerror or error}): choose another",
            errors=[{"field": "into", "reason": "cannot be written"}],
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise BackupMismatch(f"another backup into {directory} is under way: wait for its end") from error
        try:
            yield _open(directory)
        except BaseException:
            if new and not any((directory / EVENTS).glob("*.parquet")):  # nothing that a next run could resume
                shutil.rmtree(directory, ignore_errors=True)
            raise


def _open(directory: Path) -> Manifest:
    if (directory / NAME).exists():
        manifest = load(directory)
        _remove_left_over(directory, manifest)
        return manifest
    manifest = new_manifest()
    _remove_left_over(directory, manifest)
    directory.chmod(0o700)
    save(directory, manifest)
    return manifest


def _check_ours(directory: Path) -> None:
    """Raise BackupMismatch for a directory with other files, before anything is written into it."""
    if not directory.is_dir() or (directory / NAME).exists():
        return
    others = {entry.name for entry in directory.iterdir()} - {EVENTS, "lock", f"{NAME}.draft"}
    events = (directory / EVENTS).iterdir() if (directory / EVENTS).is_dir() else ()
    if others or sum(file.suffix == ".parquet" for file in events) > 1:  # one may precede the first manifest
        raise BackupMismatch(f"{directory} is not empty and holds no backup: choose an empty or a new directory")


def _remove_left_over(directory: Path, manifest: Manifest) -> None:
    """Remove files of an interrupted backup, which the manifest does not list."""
    listed = {segment.file for segment in manifest.segments}
    for path in (directory / EVENTS).iterdir():
        if path.suffix == ".part" or (_FILE.fullmatch(path.name) and f"{EVENTS}/{path.name}" not in listed):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()


def _serialized(content: JsonObject) -> bytes:
    digest = hashlib.sha256(orjson.dumps(content, option=orjson.OPT_SORT_KEYS)).hexdigest()
    document = {"backup": content, "sha256": digest}
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def _to_json(manifest: Manifest) -> JsonObject:
    return {
        "format": FORMAT,
        "created": manifest.created,
        "updated": manifest.updated,
        "chain": manifest.chain.to_json(),
        "root": manifest.chain.root().hex(),
        "signed": manifest.signed.to_json() if manifest.signed else None,
        "segments": [
            {
                "file": one.file,
                "first": one.first,
                "last": one.last,
                "bytes": one.size,
                "sha256": one.sha256,
                "head": one.head.hex(),
                "leaf": one.leaf.hex(),
            }
            for one in manifest.segments
        ],
    }


def _from_json(content: JsonObject) -> Manifest:
    segments = tuple(
        Segment(
            one["file"],
            one["first"],
            one["last"],
            one["bytes"],
            one["sha256"],
            bytes.fromhex(one["head"]),
            bytes.fromhex(one["leaf"]),
        )
        for one in content["segments"]
    )
    signed = Witness.from_json(content["signed"]) if content["signed"] is not None else None
    return Manifest(content["created"], content["updated"], Chain.from_json(content["chain"]), segments, signed)


def _check_order(manifest: Manifest) -> None:
    """Raise ValueError unless the files follow each other from position 1 to the end of the chain."""
    before = 0
    for segment in manifest.segments:
        if segment.first != before + 1 or segment.last < segment.first or len(segment.leaf) != HASH_BYTES:
            raise ValueError(f"{segment.file} does not follow position {before}")
        expected = segment_path(Path(), segment.first, segment.last)
        if segment.file != expected.as_posix():
            raise ValueError(f"{segment.file!r} is not the name of a segment")
        before = segment.last
    head = manifest.segments[-1].head if manifest.segments else Chain.empty().head
    if manifest.signed is not None and manifest.signed.position > before:
        raise ValueError(f"its signed checkpoint is at {manifest.signed.position}, behind its end")
    if manifest.chain.position != before or manifest.chain.head != head:
        raise ValueError(f"its chain ends at {manifest.chain.position}, its files end at {before}")


def _now() -> str:
    return datetime.now(UTC).isoformat()

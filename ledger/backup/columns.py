"""Decoded columns of the archive in a backup that was asked to have them: a restore folds its views from them.

They are as the archive has them, with the manifest that the node signed, and take nearly as many bytes again as the
events. They follow from the events: a backup whose columns are missing or damaged is restored without them. The
backup's manifest says which columns it has: the SHA-256 of each one's own manifest, by the name of the segment.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from hashlib import sha256

import orjson
import structlog

from kledger.contract.errors import BackupDamaged
from ledger.archive.archived import Archived
from ledger.archive.columns_manifest import files_in, read_columns_manifest
from ledger.archive.event_file import file_digest
from ledger.archive.events import leaves_digest
from ledger.archive.manifest import NAME, NotBelieved
from ledger.archive.segments import COLUMNS
from ledger.backup.manifest import Manifest, Segment, save
from ledger.backup.place import Place
from ledger.event import JsonObject

log = structlog.get_logger(__name__)


def keep_columns(place: Place, manifest: Manifest, archived: Archived) -> Manifest:
    """The manifest, saved, with the columns that the archive has of the backup's segments; others are no longer listed.

    Those of which a file is missing or cut are kept once more. Columns that are not believed are left out. Raises
    OSError, ObjectStoreFailed, BackupMismatch.
    """
    before, sizes = manifest.columns or {}, place.sizes()
    there = dict(_in_archive(manifest, archived))
    same = {
        name: digest for name, digest in there.items() if before.get(name) == digest and _is_kept(sizes, archived, name)
    }
    if manifest.columns != same:  # before a file of them is replaced
        manifest = manifest.with_columns(same)
        save(place, manifest)
    for segment in manifest.segments:
        name = segment.stretch.name
        if name in there and name not in same and _copied(place, segment, archived, there[name]):
            manifest = manifest.with_columns({**(manifest.columns or {}), name: there[name]})
            save(place, manifest)
    return manifest


def _in_archive(manifest: Manifest, archived: Archived) -> Iterator[tuple[str, str]]:
    """The name of each segment of the backup with columns in the archive, and the digest of their manifest."""
    for segment in manifest.segments:
        name = segment.stretch.name
        try:
            content = (archived.directory / COLUMNS / name / NAME).read_bytes()
        except OSError:
            continue
        yield name, sha256(content).hexdigest()


def _is_kept(sizes: Mapping[str, int], archived: Archived, name: str) -> bool:
    """Whether the backup has each file of these columns, as large as the archive's; what is in them is not read."""
    try:
        files = list((archived.directory / COLUMNS / name).iterdir())
        return all(sizes.get(f"{COLUMNS}/{name}/{file.name}") == file.lstat().st_size for file in files)
    except OSError:  # the archive replaces them
        return False


def _copied(place: Place, segment: Segment, archived: Archived, digest: str) -> bool:
    """Whether the columns of a segment are in the backup now, those with a manifest of this digest."""
    stretch = segment.stretch
    directory = archived.directory / COLUMNS / stretch.name
    try:
        leaves = archived.leaves.read(*stretch)
        if leaves[-1] != segment.leaf:
            raise NotBelieved(f"{COLUMNS}/{stretch.name}", "its columns are those of other events")
        signed = read_columns_manifest(archived.directory, stretch, leaves_digest(leaves), archived.keys)
        if signed is None:
            return False
        for name, expected in (*files_in(signed).items(), (NAME, digest)):
            draft = place.same(directory / name, f"{COLUMNS}/{stretch.name}/{name}")
            if file_digest(draft) != expected:
                raise NotBelieved(f"{COLUMNS}/{stretch.name}/{name}", "its bytes are not those that were signed")
            place.put(draft, f"{COLUMNS}/{stretch.name}/{name}")
    except (NotBelieved, FileNotFoundError) as error:  # the archive may have replaced them meanwhile
        log.warning("columns of the archive are not backed up", segment=stretch.name, why=str(error))
        return False
    return True


def listed_files(place: Place, segment: str, digest: str) -> Iterator[tuple[str, str]]:
    """The name and the SHA-256 of every file of a segment's columns in a backup, by what its manifest says of them.

    Raises BackupDamaged where the manifest of columns is missing, is another one than the backup's names, or none.
    """
    yield f"{COLUMNS}/{segment}/{NAME}", digest
    yield from _files(segment, _listed(place, segment, digest))


def _files(segment: str, listed: object) -> Iterator[tuple[str, str]]:
    """The name and the SHA-256 of each file. Whoever may write to the backup may have made the manifest."""
    try:
        files = files_in(listed)
    except ValueError as error:
        raise BackupDamaged(f"{COLUMNS}/{segment}/{NAME} cannot be read: {error}") from error
    for name, expected in files.items():
        yield f"{COLUMNS}/{segment}/{name}", expected


def _listed(place: Place, segment: str, digest: str) -> JsonObject:
    name = f"{COLUMNS}/{segment}/{NAME}"
    try:
        content = place.read(name)
    except OSError as error:
        raise BackupDamaged(f"{name} cannot be read: {error.strerror or error}") from error
    if sha256(content).hexdigest() != digest:
        raise BackupDamaged(f"{name} was changed: its SHA-256 is another one")
    try:
        listed: JsonObject = orjson.loads(content)
    except ValueError as error:
        raise BackupDamaged(f"{name} cannot be read: {error}") from error
    return listed


def problems_of_columns(place: Place, manifest: Manifest, leaves: Mapping[str, str]) -> list[str]:
    """What is wrong with the columns of a backup; `leaves` has the digest of each segment's leaves, by its name."""
    problems: list[str] = []
    command = f"kledger backup {shlex.quote(str(place))}"
    instead = (
        f"a restore decodes these events instead; {command} --no-columns and then {command} --columns mend it where "
        "the node runs"
    )
    for segment, digest in (manifest.columns or {}).items():
        try:
            listed = _listed(place, segment, digest)
            for name, expected in _files(segment, listed):
                with place.local(name) as file:
                    if file_digest(file) != expected:
                        raise BackupDamaged(f"{name} was changed: its SHA-256 is another one")
            if listed.get("leaves") != leaves.get(segment):
                raise BackupDamaged(f"{COLUMNS}/{segment} has the columns of other events")
        except BackupDamaged as error:
            problems.append(f"{error.message} ({instead})")
        except OSError as error:
            problems.append(f"{COLUMNS}/{segment} cannot be read: {error.strerror or error} ({instead})")
    return problems

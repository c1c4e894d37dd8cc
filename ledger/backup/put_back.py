"""Archive of a restored node: the files of its backup are segments again, and its chain begins with their leaves.

A restore has compared every event of the stream with the backup, so the node that is made there vouches for them: a key
of its own signs a checkpoint at their end, and a manifest for each segment. Without this the node would do so once it
had read the whole log, and write its archive from the log again. What is too large for a segment, or too small to be
worth one, is left to the archive's writer.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import structlog

from kledger.contract.errors import UnsafeKeyFile
from ledger.archive.columns_manifest import adopt_columns, read_columns_manifest
from ledger.archive.event_file import body_bytes_in, read_leaves
from ledger.archive.events import adopt_events, leaves_digest
from ledger.archive.manifest import NotBelieved
from ledger.archive.segments import ARCHIVE, COLUMNS, SEGMENT_BYTES, SEGMENT_EVENTS
from ledger.backup.manifest import Manifest, Segment
from ledger.integrity.chain_start import begin, note_signed
from ledger.integrity.checkpoints import append_checkpoints, last_checkpoint, sign
from ledger.integrity.notary_start import NotaryFiles
from ledger.integrity.signing_keys import SigningKeys, VerifyingKey

log = structlog.get_logger(__name__)

FEWEST_EVENTS = 1_000
"""A file of fewer events is not worth a segment."""


def put_back(
    directory: Path, manifest: Manifest, data: Path, fewest: int = FEWEST_EVENTS, key: VerifyingKey | None = None
) -> int:
    """Make the archive and the chain of a data directory from a restored backup; returns the number of segments.

    Of the backup's decoded columns those become the archive's that are signed with `key`. Nothing is done where there
    is a chain already, or nothing was restored. A failure is logged: the node has the log.
    """
    files = NotaryFiles.of(data)
    try:
        if not manifest.position or last_checkpoint(files.checkpoints) is not None:
            return 0
        for folder in (files.directory, data / ARCHIVE):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        keys, segments = SigningKeys.open(files.keys), 0
        for one in manifest.segments:
            path = directory / one.file
            leaves = read_leaves(path, one.events)
            files.leaves.append(leaves, one.first - 1)
            if _is_one(one, path, fewest):
                adopt_events(data / ARCHIVE, one.stretch, path, one.sha256, leaves, keys)
                segments += 1
                if key is not None and one.stretch.name in (manifest.columns or ()):
                    _adopt_columns(directory, one, data / ARCHIVE, leaves_digest(leaves), key, keys)
        begin(files, manifest.position, manifest.position)
        append_checkpoints(files.checkpoints, [sign(manifest.chain, keys, datetime.now(UTC))])
        note_signed(files)
    except (OSError, ValueError, UnsafeKeyFile) as error:
        log.warning("the backup is not put back as the archive: the node makes it from the log", why=str(error))
        return 0
    return segments


def _adopt_columns(
    directory: Path, file: Segment, archive: Path, leaves: str, key: VerifyingKey, keys: SigningKeys
) -> None:
    """Take over the columns of a file that are signed with `key`; the node makes others. Raises UnsafeKeyFile."""
    segment = file.stretch
    try:
        signed = read_columns_manifest(directory, segment, leaves, {key.id: key})
        if signed is not None:
            adopt_columns(archive, segment, directory / COLUMNS / segment.name, signed, keys)
    except (NotBelieved, OSError) as error:
        log.warning("columns of the backup are left out", segment=segment.name, why=str(error))


def _is_one(file: Segment, path: Path, fewest: int) -> bool:
    """Whether the archive would have a segment like this file."""
    return fewest <= file.events <= SEGMENT_EVENTS and body_bytes_in(path) <= SEGMENT_BYTES + SEGMENT_EVENTS * 8

"""Manifest of a segment's decoded columns: which events they are of, and what their files are.

What stands in the files is known to whoever folds (projections/archive/columns.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ledger.archive.event_file import file_digest
from ledger.archive.manifest import NAME, NotBelieved, read_manifest, write_manifest
from ledger.archive.segments import COLUMNS, Segment, whole_directory
from ledger.event import JsonObject
from ledger.integrity.signing_keys import SigningKeys, VerifyingKey
from ledger.runtime.same_file import same_file

_OF_THE_NODE = {"format", "key"}  # who signs writes them
_PART = re.compile(r"(?=.{1,100}\Z)[a-z0-9_]+(\.[a-z0-9_]+)*")
"""What a part of the columns is called: no name leads out of its directory."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


def file_name(part: str) -> str:
    """The name of the file with a part of the columns."""
    return f"{part}.parquet"


def files_in(manifest: object) -> dict[str, str]:
    """The SHA-256 of each file by its name, which is one of the directory itself. Raises ValueError.

    The manifest may be anybody's: whoever copies the files asks here first where they are.
    """
    match manifest:
        case {"files": dict() as files}:
            return dict(_file(part, about) for part, about in files.items())
    raise ValueError("it is not a manifest of columns")


def _file(part: str, about: object) -> tuple[str, str]:
    match about:
        case {"sha256": str() as sha256} if _PART.fullmatch(part) and is_sha256(sha256):
            return file_name(part), sha256
    raise ValueError(f"it names the file {part[:100]!r}, which no columns have")


def is_sha256(text: object) -> bool:
    """Whether this is a SHA-256 as manifests have it."""
    return isinstance(text, str) and _SHA256.fullmatch(text) is not None


def read_columns_manifest(
    archive: Path, segment: Segment, leaves: object, keys: Mapping[str, VerifyingKey]
) -> JsonObject | None:
    """The manifest of the columns that belong to these leaves; None where there are none. Raises NotBelieved."""
    directory = archive / COLUMNS / segment.name
    if not directory.is_dir():
        return None
    manifest = read_manifest(directory, keys)
    if (manifest.get("part"), manifest.get("first"), manifest.get("last")) != (COLUMNS, *segment):
        raise NotBelieved(f"{COLUMNS}/{segment.name}", "its manifest is that of another one")
    if manifest.get("leaves") != leaves:
        raise NotBelieved(f"{COLUMNS}/{segment.name}", "its columns are those of other events")
    try:
        files_in(manifest)
    except ValueError as error:
        raise NotBelieved(f"{COLUMNS}/{segment.name}/{NAME}", str(error)) from error
    return manifest


def adopt_columns(archive: Path, segment: Segment, source: Path, manifest: JsonObject, keys: SigningKeys) -> None:
    """Make columns of the files in a directory, whose manifest was believed there.

    Raises NotBelieved (a file is another one), OSError, UnsafeKeyFile.
    """
    with whole_directory(archive / COLUMNS / segment.name, over=True) as draft:
        for name, sha256 in files_in(manifest).items():
            same_file(source / name, draft / name)
            if file_digest(draft / name) != sha256:
                raise NotBelieved(f"{COLUMNS}/{segment.name}/{name}", "its bytes are not those that were signed")
        write_manifest(draft, {name: said for name, said in manifest.items() if name not in _OF_THE_NODE}, keys)

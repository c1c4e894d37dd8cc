"""Manifest of a segment's decoded columns: which events they are of, and what their files are.

What stands in the files is known to whoever folds (projections/archive/columns.py).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ledger.archive.event_file import file_digest
from ledger.archive.manifest import NotBelieved, read_manifest, write_manifest
from ledger.archive.segments import COLUMNS, Segment, whole_directory
from ledger.event import JsonObject
from ledger.integrity.signing_keys import SigningKeys, VerifyingKey
from ledger.runtime.same_file import same_file

_PART = re.compile(r"[a-z_]+(\.[a-z_]+)*")
"""Of what names of files are made: none leads out of its directory."""
_OF_THE_NODE = {"format", "key"}  # who signs writes them


def file_name(part: str) -> str:
    """The name of the file with a part of the columns."""
    return f"{part}.parquet"


def files_in(manifest: object) -> dict[str, str]:
    """The SHA-256 of each file by its name. Raises ValueError where it is no manifest of columns."""
    files = manifest.get("files") if isinstance(manifest, dict) else None
    if not isinstance(files, dict) or not all(_PART.fullmatch(part) for part in files):
        raise ValueError("it is no manifest of columns")
    try:
        return {file_name(part): str(about["sha256"]) for part, about in files.items()}
    except (KeyError, TypeError) as error:
        raise ValueError("it is no manifest of columns") from error


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
    return manifest


def adopt_columns(archive: Path, segment: Segment, source: Path, manifest: JsonObject, keys: SigningKeys) -> None:
    """Make columns of the files in a directory, whose manifest was believed there.

    Raises NotBelieved (a file is another one), OSError, UnsafeKeyFile.
    """
    try:
        files = files_in(manifest)
    except ValueError as error:
        raise NotBelieved(f"{COLUMNS}/{segment.name}", str(error)) from error
    with whole_directory(archive / COLUMNS / segment.name, over=True) as draft:
        for name, sha256 in files.items():
            same_file(source / name, draft / name)
            if file_digest(draft / name) != sha256:
                raise NotBelieved(f"{COLUMNS}/{segment.name}/{name}", "its bytes are not those that were signed")
        write_manifest(draft, {name: said for name, said in manifest.items() if name not in _OF_THE_NODE}, keys)

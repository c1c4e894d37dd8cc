"""Decoded columns of a segment: a Parquet file for each event name in it, as the decoder makes them.

What an event's columns are depends on its own bytes alone, for most events. Those of which that is not so have no row:
an event with sealed values, which is opened with the keys of the moment it is folded; one that records a forgetting,
which the vault has to confirm; one that is refused. Whoever reads the columns decodes these from the segment's events.
So nothing stands here in clear that the log has sealed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from ledger.archive.manifest import NotBelieved, checked_content, read_manifest, write_manifest
from ledger.archive.segments import COLUMNS, Segment, whole_directory
from ledger.event import Fact, JsonObject, StoredEvent
from ledger.events import FACTS
from ledger.integrity.signing_keys import SigningKeys, VerifyingKey
from ledger.privacy.sealed import may_be_sealed
from projections.engine.decode import parse
from projections.engine.forgotten import may_be_a_claim
from projections.fold_kit.parser import Parser

Tables = dict[type[Fact], pa.Table]

_LEVEL = 1
_FEW_VALUES = ("type", "source", "actor", "org", "entity", "owner")


def decoded_ahead(parser: Parser, events: Sequence[StoredEvent]) -> Tables:
    """The columns of the events that nothing but their own bytes decides, by fact, sorted by position."""
    plain = [event for event in events if not may_be_sealed(event.body) and not may_be_a_claim(event.subject)]
    parsed, _ = parse(parser, plain) if plain else ({}, [])
    return {fact: table.sort_by("position") for fact, table in parsed.items()}


def write_columns(
    archive: Path, segment: Segment, leaves: str, decoder: str, tables: Tables, keys: SigningKeys
) -> None:
    """Write the columns of a segment in place of earlier ones; `leaves` is the digest in its events' manifest.

    Raises NotBelieved when they are read back as others, OSError, UnsafeKeyFile.
    """
    import pyarrow.parquet as pq

    directory = archive / COLUMNS / segment.name
    files: JsonObject = {}
    with whole_directory(directory, over=True) as draft:
        for fact, table in tables.items():
            path = draft / f"{fact.name}.parquet"
            pq.write_table(table, path, compression="zstd", compression_level=_LEVEL, write_statistics=["position"])
            content = path.read_bytes()
            if not _table(content).equals(table):
                raise NotBelieved(f"{COLUMNS}/{segment.name}/{path.name}", "it was read back with other rows")
            files[fact.name] = {
                "rows": len(table),
                "bytes": len(content),
                "sha256": hashlib.sha256(content).hexdigest(),
            }
        about: JsonObject = {"part": COLUMNS, "first": segment.first, "last": segment.last, "leaves": leaves}
        write_manifest(draft, {**about, "decoder": decoder, "files": files}, keys)


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


def read_columns(archive: Path, segment: Segment, manifest: JsonObject) -> Tables:
    """The columns of a segment by fact, checked with their manifest. Raises NotBelieved."""
    directory, tables = archive / COLUMNS / segment.name, {}
    for name, file in manifest["files"].items():
        content = checked_content(directory, f"{name}.parquet", file["sha256"])
        try:
            tables[FACTS[name]] = _table(content)
        except (pa.ArrowException, OSError, KeyError) as error:
            raise NotBelieved(f"{COLUMNS}/{segment.name}/{name}.parquet", f"it cannot be read: {error}") from error
    return {fact: tables[fact] for fact in FACTS.values() if fact in tables}


def missing_from(tables: Tables, segment: Segment) -> np.ndarray:
    """The places in a segment, from 0 and ascending, of the events without a row."""
    there = np.zeros(segment.last - segment.first + 1, np.bool_)
    for table in tables.values():
        there[table["position"].to_numpy() - segment.first] = True
    return np.flatnonzero(~there)


def _table(content: bytes) -> pa.Table:
    import pyarrow.parquet as pq

    with pq.ParquetFile(pa.BufferReader(content), pre_buffer=False) as file:
        return file.read(use_threads=False)

"""Decoded columns of a segment: a Parquet file for each event name in it, as the decoder makes them.

What an event's columns are depends on its own bytes alone, for most events. Where it depends on the keys of a person,
the words in them stand in a file of their own, encrypted (sealed_columns.py). Those of which it depends on more have no
row: an event with other sealed values, one that records a forgetting, which the vault has to confirm, one that is
refused. Whoever reads the columns decodes these from the segment's events. So nothing stands here in clear that the log
has sealed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from ledger.archive.columns_manifest import file_name
from ledger.archive.manifest import NotBelieved, checked_content, write_manifest
from ledger.archive.segments import COLUMNS, Segment, whole_directory
from ledger.event import JsonObject, StoredEvent
from ledger.events import FACTS
from ledger.integrity.signing_keys import SigningKeys
from ledger.privacy.keyring import Keyring
from ledger.privacy.sealed import may_be_sealed
from projections.archive.sealed_columns import SealedColumns, Tables, nothing, sealed_ahead
from projections.engine.decode import parse
from projections.engine.forgotten import may_be_a_claim
from projections.fold_kit.parser import Parser

_LEVEL = 1
_SEALED, _WORDS = ".sealed", "words"


class Columns(NamedTuple):
    """The columns of a segment: of events that nothing but their own bytes decides, and of sealed ones."""

    clear: Tables
    sealed: SealedColumns


def no_columns() -> Columns:
    """Of a segment of which none are read."""
    return Columns({}, nothing())


def decoded_ahead(parser: Parser, keyring: Keyring, segment: Segment, events: Sequence[StoredEvent]) -> Columns:
    """The columns of events that can be decoded once for all, by fact. Raises what the vault raises."""
    decided = [event for event in events if not may_be_a_claim(event.subject)]
    plain = [event for event in decided if not may_be_sealed(event.body)]
    parsed, _ = parse(parser, plain) if plain else ({}, [])
    sealed = sealed_ahead(parser, keyring, segment, (event for event in decided if may_be_sealed(event.body)))
    return Columns({fact: table.sort_by("position") for fact, table in parsed.items()}, sealed)


def write_columns(
    archive: Path, segment: Segment, leaves: str, decoder: str, columns: Columns, keys: SigningKeys
) -> None:
    """Write the columns of a segment in place of earlier ones; `leaves` is the digest in its events' manifest.

    Raises NotBelieved when they are read back as others, OSError, UnsafeKeyFile.
    """
    directory = archive / COLUMNS / segment.name
    files: JsonObject = {}
    with whole_directory(directory, over=True) as draft:
        for name, table in _files(columns):
            path = draft / file_name(name)
            content = _written(path, table)
            if not _table(content).equals(table):
                raise NotBelieved(f"{COLUMNS}/{segment.name}/{path.name}", "it was read back with other rows")
            files[name] = {
                "rows": len(table),
                "bytes": len(content),
                "sha256": hashlib.sha256(content).hexdigest(),
            }
        about: JsonObject = {"part": COLUMNS, "first": segment.first, "last": segment.last, "leaves": leaves}
        write_manifest(draft, {**about, "decoder": decoder, "files": files}, keys)


def _files(columns: Columns) -> Iterator[tuple[str, pa.Table]]:
    """The name and rows of each file."""
    yield from ((fact.name, table) for fact, table in columns.clear.items())
    yield from ((fact.name + _SEALED, table) for fact, table in columns.sealed.tables.items())
    if columns.sealed.tables:
        yield _WORDS, columns.sealed.words


def _written(path: Path, table: pa.Table) -> bytes:
    import pyarrow.parquet as pq

    if path.stem == _WORDS:  # nothing compresses what is encrypted
        pq.write_table(table, path, compression="none", use_dictionary=False, write_statistics=False)
    else:
        pq.write_table(table, path, compression="zstd", compression_level=_LEVEL, write_statistics=["position"])
    return path.read_bytes()


def read_columns(archive: Path, segment: Segment, manifest: JsonObject) -> Columns:
    """The columns of a segment, checked with their manifest. Raises NotBelieved."""
    directory, tables = archive / COLUMNS / segment.name, dict[str, pa.Table]()
    for name, file in manifest["files"].items():
        content = checked_content(directory, file_name(name), file["sha256"])
        try:
            tables[name] = _table(content)
        except (pa.ArrowException, OSError) as error:
            raise NotBelieved(f"{COLUMNS}/{segment.name}/{name}.parquet", f"it cannot be read: {error}") from error
    clear, sealed = (
        {fact: tables[fact.name + part] for fact in FACTS.values() if fact.name + part in tables}
        for part in ("", _SEALED)
    )
    return Columns(clear, SealedColumns(sealed, tables[_WORDS]) if sealed else nothing())


def missing_from(tables: Iterable[pa.Table], part: Segment) -> np.ndarray:
    """The places in a part of a segment, from 0 and ascending, of the events without a row."""
    there = np.zeros(part.last - part.first + 1, np.bool_)
    for table in tables:
        there[table["position"].to_numpy() - part.first] = True
    return np.flatnonzero(~there)


def _table(content: bytes) -> pa.Table:
    import pyarrow.parquet as pq

    with pq.ParquetFile(pa.BufferReader(content), pre_buffer=False) as file:
        return file.read(use_threads=False)

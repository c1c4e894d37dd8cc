"""Archive writer: whatever is signed of the log and not in the archive yet is written, segment by segment.

A kill at any moment leaves whole segments, and a draft that the next run removes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson
import structlog

from kledger.contract.errors import LedgerError
from ledger.archive.event_file import events_in
from ledger.archive.events import SegmentEvents, read_events_manifest, write_events
from ledger.archive.manifest import NAME, NotBelieved
from ledger.archive.segments import (
    ARCHIVE,
    COLUMNS,
    EVENTS,
    SEGMENT_BYTES,
    Segment,
    events_file,
    forget_aside,
    gaps,
    only_writer,
    remove_columns_alone,
    remove_drafts,
    segments_in,
    set_aside,
)
from ledger.event import JsonObject, StoredEvent
from ledger.integrity.notary_start import NotaryFiles
from ledger.integrity.signing_keys import SigningKeys, public_keys
from ledger.privacy.keyring import Keyring
from ledger.stream import Ledger
from projections.archive.columns import decoded_ahead, write_columns
from projections.archive.decoder_version import DECODER_VERSION
from projections.fold_kit.parser import Parser

log = structlog.get_logger(__name__)

_READ_EVENTS = 5_000


@dataclass(frozen=True, slots=True)
class Written:
    """What one run wrote: segments of events, and columns of segments.

    `damaged` has `segment`, `file` and `reason` of each that it did not believe, and set aside for the next run.
    """

    segments: int
    columns: int
    damaged: Sequence[JsonObject] = ()


def stretches(segments: list[Segment], signed: int, size: int) -> Iterator[Segment]:
    """What of the first `signed` events is in no segment: gaps between them, and what fills whole ones at the end."""
    for first, last in gaps(segments, 1, signed):
        if last < signed:
            yield Segment(first, last)
        elif whole := (last - first + 1) // size * size:
            yield Segment(first, first + whole - 1)


def undecoded(archive: Path) -> list[Segment]:
    """The segments without columns of this version of the decoder; what a manifest says is not checked here."""
    return [segment for segment in segments_in(archive / EVENTS) if _decoder_of(archive, segment) != DECODER_VERSION]


def is_due(data: Path, signed: int, size: int, *, columns: bool = True) -> bool:
    """Whether there is anything to write; without `columns` only whether there are events, which is faster to see."""
    archive = data / ARCHIVE
    return any(stretches(segments_in(archive / EVENTS), signed, size)) or (columns and bool(undecoded(archive)))


async def write_due(ledger: Ledger, data: Path, signed: int, size: int, keyring: Keyring | None = None) -> Written:
    """Write the events up to position `signed` that are in no segment, in segments of `size`, and missing columns.

    `keyring` opens sealed events; those that it does not open have no columns. Raises ServiceFailed (another one
    writes), NotBelieved, OSError, LogGap, BrokerUnavailable, WrongMasterKey, UnsafeKeyFile.
    """
    archive, files = data / ARCHIVE, NotaryFiles.of(data)
    keys, segments, columns, damaged = SigningKeys(files.keys), 0, 0, list[JsonObject]()
    failed: Exception | None = None
    with only_writer(archive), contextlib.closing(Parser()) as parser:
        remove_drafts(archive)
        for stretch in stretches(segments_in(archive / EVENTS), signed, size):
            async with contextlib.aclosing(_pieces(ledger, stretch, size)) as pieces:
                async for events in pieces:
                    leaves = files.leaves.read(events[0].position, events[-1].position)
                    await asyncio.to_thread(write_events, archive, events, leaves, keys)
                    segments += 1
        forget_aside(archive)
        remove_columns_alone(archive)
        for segment in undecoded(archive):
            try:
                digest, there = await asyncio.to_thread(_believed, archive, segment, files)
            except NotBelieved as error:
                log.warning("a segment of the archive is set aside, and made anew", file=error.file, why=error.reason)
                set_aside(archive, segment, error.file)
                damaged.append({"segment": segment.name, "file": error.file, "reason": error.reason})
                continue
            try:
                made = await asyncio.to_thread(decoded_ahead, parser, keyring or Keyring(), segment, there)
            except LedgerError:
                raise
            except Exception as error:  # the other segments have columns all the same
                log.exception("a segment of the archive has no columns", segment=segment.name)
                failed = failed or error
                continue
            await asyncio.to_thread(write_columns, archive, segment, digest, DECODER_VERSION, made, keys)
            columns += 1
    if failed is not None:
        raise failed
    return Written(segments, columns, damaged)


async def _pieces(ledger: Ledger, stretch: Segment, size: int) -> AsyncGenerator[list[StoredEvent], None]:
    """The events of a stretch in lists for a segment each."""
    piece: list[StoredEvent] = []
    length = 0
    async with contextlib.aclosing(ledger.read(stretch.first, batch=min(_READ_EVENTS, size))) as lists:
        async for events in lists:
            for event in events:
                if piece and (len(piece) == size or length + len(event.body) > SEGMENT_BYTES):
                    yield piece
                    piece, length = [], 0
                if event.position > stretch.last:
                    break
                piece.append(event)
                length += len(event.body)
            if events[-1].position >= stretch.last:
                break
    if piece:
        yield piece


def _believed(archive: Path, segment: Segment, files: NotaryFiles) -> tuple[str, list[StoredEvent]]:
    """The digest of a segment's leaves, and its events. Raises NotBelieved."""
    manifest = read_events_manifest(archive, segment, public_keys(files.keys), files.leaves)
    return str(manifest["leaves"]), events_in(SegmentEvents(events_file(archive, segment), segment, manifest).rows)


def _decoder_of(archive: Path, segment: Segment) -> object:
    try:
        return orjson.loads((archive / COLUMNS / segment.name / NAME).read_bytes())["decoder"]
    except (OSError, ValueError, KeyError, TypeError):
        return None

"""Archive reader: segments as decoded batches, ready to be folded; a segment that does not fit is named and left out.

The events of a segment have to be those of the signed chain, and its columns those that the node's key signed, made by
this version of the decoder. Events without columns (see columns.py) are decoded here, with the keys of the moment.
Where there are no columns that fit, all events of the segment are.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import structlog

from ledger.archive.archived import Archived, Segments
from ledger.archive.columns_manifest import read_columns_manifest
from ledger.archive.events import SegmentEvents
from ledger.archive.manifest import NotBelieved
from ledger.archive.segments import Segment
from ledger.event import JsonObject
from ledger.events import FACTS
from ledger.privacy.keyring import Keyring
from ledger.store.parked import Parked
from projections.archive import sealed_columns
from projections.archive.archived_events import ArchivedEvents
from projections.archive.columns import Columns, missing_from, no_columns, read_columns
from projections.archive.decoder_version import DECODER_VERSION
from projections.archive.sealed_columns import Tables
from projections.engine.batch import ready
from projections.engine.decode import completed, parse
from projections.engine.parking import ABOUT_THE_EVENT
from projections.engine.predecode import Ahead
from projections.engine.unsealing import Opened
from projections.fold_kit import late_compute as pc
from projections.fold_kit.parser import Parser

log = structlog.get_logger(__name__)


class Archive:
    """Segments as they are when this is made. Used by one thread at a time."""

    def __init__(self, there: Segments) -> None:
        self.there = there
        self.events = 0
        """How many events were read here instead of from the log."""
        self.damaged: list[JsonObject] = []
        """`segment`, `file` and `reason` of each that was left out."""

    @classmethod
    def of_node(cls, data: Path) -> Archive:
        """The archive in a node's data directory."""
        return cls(Archived.of_node(data))

    def begin_anew(self) -> None:
        """Count from nothing: all is read once more."""
        self.events, self.damaged = 0, []

    def decoded(self, parser: Parser, keyring: Keyring, part: Segment, parked: Parked) -> Ahead | None:
        """The events of a part of a segment, ready to be folded; None where the segment is not believed.

        Raises what the vault raises.
        """
        segment = self.there.at(part.first)
        assert segment is not None  # the caller has it from there
        try:
            manifest = self.there.manifest_of(segment)
            events = ArchivedEvents(SegmentEvents(self.there.events_file(segment), segment, manifest), part)
            columns = self._columns(segment, manifest["leaves"])
            opened = sealed_columns.opened(columns.sealed, keyring, segment)
            tables = [_of(each, part, parked) for each in (columns.clear, opened)]
            apart = events.taken(missing_from((table for each in tables for table in each.values()), part))
        except NotBelieved as error:
            self._leave_out(segment, error)
            return None
        self.events += len(events)
        try:
            return _joined(parser, ready(keyring, apart, parked), events, tables)
        except ABOUT_THE_EVENT:
            return list(events)  # fold_strictly finds the event

    def _columns(self, segment: Segment, leaves: object) -> Columns:
        """The columns of a segment, as far as this version may read them."""
        try:
            manifest = read_columns_manifest(self.there.directory, segment, leaves, self.there.keys)
            if manifest is None or manifest["decoder"] != DECODER_VERSION:
                return no_columns()
            return read_columns(self.there.directory, segment, manifest)
        except NotBelieved as error:
            self._leave_out(segment, error)
            return no_columns()

    def _leave_out(self, segment: Segment, error: NotBelieved) -> None:
        self.damaged.append({"segment": segment.name, "file": error.file, "reason": error.reason})
        log.warning("a segment of the archive is left out", file=error.file, why=error.reason)


def _of(tables: Tables, part: Segment, parked: Parked) -> Tables:
    """The rows of a part of a segment, without those of parked events: these are blanked before they are decoded."""
    held = pa.array([at for at in parked if part.first <= at <= part.last], pa.int64())
    cut = {}
    for fact, rows in tables.items():
        positions = rows["position"].to_numpy()
        inside = (positions >= part.first) & (positions <= part.last)
        if not inside.all():
            rows = rows.filter(pa.array(inside))
        if len(held):
            rows = rows.filter(pc.invert(pc.is_in(rows["position"], held)))
        if len(rows):
            cut[fact] = rows
    return cut


def _joined(parser: Parser, apart: Opened, events: ArchivedEvents, tables: list[Tables]) -> Ahead:
    """A batch of the rows that are here and of the events apart; equal to what decoding all of them makes."""
    parsed, refused = parse(parser, apart.events)
    both = {
        fact: pa.concat_tables([rows[fact] for rows in (*tables, parsed) if fact in rows])
        for fact in FACTS.values()
        if any(fact in rows for rows in (*tables, parsed))
    }
    return completed(parser, Opened(events, events, apart.failed, apart.erased, events.extent), both, refused)

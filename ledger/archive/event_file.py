"""Event file: one zstd Parquet file of events, of the archive or of a backup; lossless and readable with DuckDB.

Columns: `position`, `stored_ns` (nanoseconds since 1970, UTC), `subject`, `message_id`, `body`, and `leaf`, the
event's hash in the chain. A body or message id that is not UTF-8 (a foreign client may send any bytes) is in
`body_bytes` or `message_id_bytes`, and its text column is NULL.

A file holds consecutive positions. Its rows may stand by organisation, and by position in each: so an engine skips
what is no concern of a query, by the least and the greatest subject and time of each row group. Whoever reads a file
here has its events in the order of their positions.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from ledger.event import StoredEvent
from ledger.integrity.chain import HASH_BYTES

if TYPE_CHECKING:
    import pyarrow.parquet as pq

# pyarrow.parquet is loaded by what reads or writes a file: an idle node does neither.
SCHEMA = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("stored_ns", pa.int64(), nullable=False),
        pa.field("subject", pa.string(), nullable=False),
        pa.field("message_id", pa.string()),
        pa.field("body", pa.string()),
        pa.field("message_id_bytes", pa.binary()),
        pa.field("body_bytes", pa.binary()),
        pa.field("leaf", pa.binary(HASH_BYTES), nullable=False),
    ]
)
EVENT_COLUMNS = tuple(name for name in SCHEMA.names if name != "leaf")
# Size of a row group, which writer and reader hold in memory as a whole; where the organisation changes, fewer will do.
GROUP_EVENTS = 20_000
FEWEST_IN_GROUP = 2_000
GROUP_BYTES = 16 * 1024 * 1024
_READ_EVENTS = 2_000
# Nobody ever wrote more into one file: what says so would be unpacked into memory before anything in it is compared.
MOST_EVENTS = 100_000
_MOST_BYTES = 512 * 1024 * 1024


class BackupEvent(NamedTuple):
    """One event of a file with its leaf."""

    event: StoredEvent
    leaf: bytes


class SegmentWriter:
    """Writes events into one new file, readable by its owner alone; `close` syncs it to disk.

    The rows are in the order in which they are added. Where `separate` is called a row group ends, unless it and what
    follows are small.
    """

    def __init__(self, path: Path) -> None:
        import pyarrow.parquet as pq

        path.unlink(missing_ok=True)
        self.path = path
        self._file = os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
        self._writer = pq.ParquetWriter(
            self._file,
            SCHEMA,
            compression="zstd",
            use_dictionary=["subject"],
            write_statistics=["position", "stored_ns", "subject"],
        )
        self._group: list[BackupEvent] = []
        self._group_bytes = 0
        self.events = 0
        self.size = 0
        """Bytes of all bodies, before compression."""

    def add(self, event: StoredEvent, leaf: bytes) -> None:
        """Add one event."""
        self._group.append(BackupEvent(event, leaf))
        self._group_bytes += len(event.body)
        self.events += 1
        self.size += len(event.body)
        if len(self._group) >= GROUP_EVENTS or self._group_bytes >= GROUP_BYTES:
            self._flush()

    def separate(self, following: int) -> None:
        """The `following` events are of another organisation."""
        if max(len(self._group), following) >= FEWEST_IN_GROUP:
            self._flush()

    def close(self) -> None:
        """Finish the file and sync it to disk."""
        self._flush()
        self._writer.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def abandon(self) -> None:
        """Close and remove the file."""
        with contextlib.suppress(OSError):  # the disk may be full
            self._writer.close()
        with contextlib.suppress(OSError):
            self._file.close()
        self.path.unlink(missing_ok=True)

    def _flush(self) -> None:
        if self._group:
            self._writer.write_batch(_columns(self._group))
            self._group, self._group_bytes = [], 0


def _columns(group: Sequence[BackupEvent]) -> pa.RecordBatch:
    ids = [_text_or_bytes(kept.event.message_id.encode("utf-8", "surrogateescape")) for kept in group]
    bodies = [_text_or_bytes(kept.event.body) for kept in group]
    columns = [
        [kept.event.position for kept in group],
        [kept.event.stored_ns for kept in group],
        [kept.event.subject for kept in group],
        [text for text, _ in ids],
        [text for text, _ in bodies],
        [raw for _, raw in ids],
        [raw for _, raw in bodies],
        [kept.leaf for kept in group],
    ]
    arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _text_or_bytes(value: bytes) -> tuple[str | None, bytes | None]:
    try:
        return value.decode(), None
    except UnicodeDecodeError:
        return None, value


def read_segment(path: Path, events: int) -> Iterator[list[BackupEvent]]:
    """The events of one file by position, in lists; `events` is their number.

    Raises OSError, pyarrow.ArrowException, ValueError when it is damaged.
    """
    for rows in _lists_of(path, SCHEMA.names, events):
        yield list(map(BackupEvent, events_in(rows), rows["leaf"].to_pylist()))


def events_by_position(content: bytes, events: int) -> Iterator[list[StoredEvent]]:
    """The events of a whole file by position, in lists; a row group at a time is unpacked where that will do.

    `events` is their number. Raises pyarrow.ArrowException, ValueError when it is damaged.
    """
    for rows in _lists_of(pa.BufferReader(content), EVENT_COLUMNS, events):
        yield events_in(rows)


@contextlib.contextmanager
def _opened(source: Path | pa.BufferReader, events: int) -> Iterator[pq.ParquetFile]:
    """A file with so many events. What its foot says is compared before anything is unpacked. Raises ValueError."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(source, pre_buffer=False) as file:
        if not file.schema_arrow.equals(SCHEMA):
            raise ValueError("it does not have the columns of an event file")
        if (there := file.metadata.num_rows) != events:
            raise ValueError(f"it has {there:,} events in the place of {events:,}")
        if events > MOST_EVENTS or sum(one.total_uncompressed_size for one in _columns_in(file)) > _MOST_BYTES:
            raise ValueError("it has more in it than any event file")
        if any(one.has_dictionary_page and one.path_in_schema != "subject" for one in _columns_in(file)):
            raise ValueError("it repeats texts as no event file does")  # a megabyte would be unpacked once for each row
        yield file


def _columns_in(file: pq.ParquetFile) -> list[pq.ColumnChunkMetaData]:
    groups = [file.metadata.row_group(group) for group in range(file.metadata.num_row_groups)]
    return [group.column(at) for group in groups for at in range(group.num_columns)]


def _lists_of(source: Path | pa.BufferReader, columns: Sequence[str], events: int) -> Iterator[pa.Table]:
    """These columns of a file by position, a list of events at a time."""
    with _opened(source, events) as file:
        order = _order(file.read(["position"], use_threads=False))
        if order is None:
            batches = file.iter_batches(_READ_EVENTS, columns=list(columns), use_threads=False)
        else:
            batches = iter(file.read(list(columns), use_threads=False).take(order).to_batches(_READ_EVENTS))
        for batch in batches:
            yield pa.Table.from_batches([batch])


def read_leaves(path: Path, events: int) -> list[bytes]:
    """The leaves of one file with so many events by position, which stand beside them.

    Raises OSError, pyarrow.ArrowException, ValueError.
    """
    with _opened(path, events) as file:
        leaves: list[bytes] = _by_position(file.read(["position", "leaf"], use_threads=False))["leaf"].to_pylist()
    return leaves


def _by_position(rows: pa.Table) -> pa.Table:
    order = _order(rows)
    return rows if order is None else rows.take(order)


def _order(rows: pa.Table) -> np.ndarray | None:
    """The order of some rows by position; None where they stand in it."""
    positions = rows["position"].to_numpy()
    return None if (np.diff(positions) > 0).all() else np.argsort(positions, kind="stable")


def body_bytes_in(path: Path) -> int:
    """About how many bytes the bodies in one file have. Raises OSError, pyarrow.ArrowException."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, pre_buffer=False) as file:
        columns = _columns_in(file)
    return sum(one.total_uncompressed_size for one in columns if one.path_in_schema in ("body", "body_bytes"))


def event_of(
    position: int,
    stored_ns: int,
    subject: str,
    message_id: str | None,
    body: str | None,
    message_id_bytes: bytes | None,
    body_bytes: bytes | None,
) -> StoredEvent:
    """The event of one row of `events_of`."""
    if message_id is None:
        message_id = (message_id_bytes or b"").decode("utf-8", "surrogateescape")
    content = body.encode() if body is not None else body_bytes or b""
    return StoredEvent(position, stored_ns, subject, content, message_id)


def events_of(content: bytes, events: int, columns: Sequence[str] = EVENT_COLUMNS) -> pa.Table:
    """These columns of a whole file with so many events, by position; `position` is one of them.

    Raises pyarrow.ArrowException, ValueError when it is damaged.
    """
    with _opened(pa.BufferReader(content), events) as file:
        return _by_position(file.read(columns=list(columns), use_threads=False))


def events_at(content: bytes, events: int, positions: np.ndarray) -> pa.Table:
    """The columns of a whole file with so many events, of those at these positions, which ascend.

    A list of rows at a time is unpacked, of the row groups that have one. Raises as `events_of` does, and
    ValueError where one is missing.
    """
    found = [SCHEMA.empty_table().select(EVENT_COLUMNS)]
    with _opened(pa.BufferReader(content), events) as file:
        groups = [each for each in range(file.num_row_groups) if _has_any(file, each, positions)]
        for batch in file.iter_batches(_READ_EVENTS, groups, list(EVENT_COLUMNS), use_threads=False):
            wanted = np.isin(batch["position"].to_numpy(), positions)
            if wanted.any():
                found.append(pa.Table.from_batches([batch.filter(pa.array(wanted))]))
    rows = _by_position(pa.concat_tables(found))
    if len(rows) != len(positions):
        raise ValueError(f"it has {len(rows):,} events at {len(positions):,} positions")
    return rows


def _has_any(file: pq.ParquetFile, group: int, positions: np.ndarray) -> bool:
    """Whether a row group has one of these positions: by its rows, as the foot of a file may say what is not so."""
    there = file.read_row_group(group, ["position"], use_threads=False)["position"].to_numpy()
    return bool(np.isin(there, positions).any())


def events_in(rows: pa.Table) -> list[StoredEvent]:
    """The events of some rows of a file."""
    if rows["message_id"].null_count or rows["body"].null_count:
        columns = [rows[name].to_pylist() for name in EVENT_COLUMNS]
        return [event_of(*row) for row in zip(*columns, strict=True)]
    bodies = rows["body"].cast(pa.binary())  # as they are, without a text of each
    plain = (rows["position"], rows["stored_ns"], rows["subject"], bodies, rows["message_id"])
    return list(map(StoredEvent, *(column.to_pylist() for column in plain)))


def file_digest(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

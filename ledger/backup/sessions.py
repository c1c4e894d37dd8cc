"""Words of sessions in a backup: a copy of the stream of words at the time of the backup, in one zstd Parquet file.

Each run writes it anew, so that a session which was removed disappears from the backup too. `sessions.json` names the
file with its SHA-256, and is replaced last: an interrupted run leaves the copy of before. What belongs to a person is
sealed in it as it is in the stream. It is no `.parquet`: whoever reads the events of a backup by that ending reads
events alone.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from kledger.contract.errors import BackupDamaged
from ledger.archive.event_file import file_digest
from ledger.backup.manifest import check_is_of, named_after
from ledger.backup.place import SESSIONS as NAME
from ledger.backup.place import Place, Where, place_of
from ledger.broker.access import SESSION_SUBJECTS, SESSIONS_STREAM, BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.error_codes import NO_STREAM
from ledger.event import JsonObject
from ledger.sessions.head import head_read
from ledger.sessions.jetstream import JetStreamSessions, ensure_sessions_stream
from ledger.sessions.message_batch import BATCH_BYTES, BATCH_RECORDS
from ledger.sessions.port import NewRecord, Record, SessionStream
from ledger.sessions.subjects import SessionKey, key_of
from ledger.wire.publication import error_code, error_of

WORDS = re.compile(r"sessions-[0-9a-f]{16}\.words")
"""The name of a file with words."""
_READ = 100
_MOST_BYTES = 512 * 1024 * 1024  # of a row group, which has so many records, none of them larger than an event
_SCHEMA = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("subject", pa.string(), nullable=False),
        pa.field("body", pa.binary(), nullable=False),
    ]
)


async def keep_sessions(stream: SessionStream, where: Where) -> int:
    """Copy the words of all sessions into a backup; returns the number of records.

    Raises BrokerUnavailable, OSError, ObjectStoreFailed.
    """
    place = place_of(where)
    part = place.draft("sessions.words")
    part.unlink(missing_ok=True)
    try:
        count = await _write_words(stream, part)
        await asyncio.to_thread(_put_in_place, place, part, count)
    except BaseException:
        part.unlink(missing_ok=True)  # it may have filled the disk
        raise
    return count


async def _write_words(stream: SessionStream, part: Path) -> int:
    """Write all records of a stream into a new file, synced to disk; returns their number."""
    count = 0
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        with pq.ParquetWriter(file, _SCHEMA, compression="zstd", use_dictionary=False) as writer:
            async for records in _all(stream):
                columns = [
                    pa.array(values, field.type)
                    for values, field in zip(zip(*records, strict=True), _SCHEMA, strict=True)
                ]
                writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=_SCHEMA))
                count += len(records)
        file.flush()
        os.fsync(file.fileno())
    return count


def _put_in_place(place: Place, part: Path, count: int) -> None:
    """Have `sessions.json` name the new copy, and remove the one before."""
    digest = file_digest(part)
    fresh = f"sessions-{digest[:16]}.words"
    place.put(part, fresh)
    about = named_after(place, {"format": 1, "file": fresh, "sha256": digest, "records": count})
    place.write(NAME, orjson.dumps(about, option=orjson.OPT_SORT_KEYS))
    for old in place.sizes():
        if old != fresh and WORDS.fullmatch(old):
            place.remove(old)


def check_sessions(where: Where) -> str | None:
    """The name of the file with the words in a backup, None where it has none. Raises BackupDamaged."""
    place = place_of(where)
    try:
        raw = place.read(NAME)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _damaged(place, error) from error
    try:
        about: JsonObject = orjson.loads(raw)
        name = str(about["file"])
        if about["format"] != 1 or orjson.dumps(about, option=orjson.OPT_SORT_KEYS) != raw or not WORDS.fullmatch(name):
            raise ValueError("it is not what was written")
        check_is_of(place, about)
        with place.local(name) as path:
            if file_digest(path) != about["sha256"]:
                raise ValueError(f"{name} was changed: its SHA-256 is another one")
            _check_foot(path, about["records"])
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise _damaged(place, error) from error
    return name


def _check_foot(path: Path, records: int) -> None:
    """Raise ValueError for a file that this program did not write, before a row of it is unpacked."""
    with pq.ParquetFile(path, pre_buffer=False) as file:
        if not file.schema_arrow.equals(_SCHEMA):
            raise ValueError(f"{path.name} does not have the columns of words")
        if file.metadata.num_rows != records:
            raise ValueError(f"{path.name} has {file.metadata.num_rows:,} records in the place of {records:,}")
        for group in map(file.metadata.row_group, range(file.metadata.num_row_groups)):
            columns = [group.column(at) for at in range(group.num_columns)]
            if sum(one.total_uncompressed_size for one in columns) > _MOST_BYTES:
                raise ValueError(f"{path.name} has more in it than words of sessions are")
            if any(one.has_dictionary_page for one in columns):
                raise ValueError(f"{path.name} repeats texts as no words of sessions are kept")


def _damaged(place: Place, error: Exception) -> BackupDamaged:
    return BackupDamaged(
        f"{NAME} of the backup in {place} is damaged ({error}): the words of sessions cannot be read without it; run "
        "kledger backup again",
        problems=[f"{NAME} is damaged"],
    )


async def has_sessions(connection: BrokerConnection) -> bool:
    """Whether the broker has words of any session. Raises BrokerUnavailable, BrokerMisconfigured."""
    info = await connection.api(f"STREAM.INFO.{SESSIONS_STREAM}")
    if error_code(info) == NO_STREAM:
        return False
    if error_code(info):
        raise error_of(info, "a look at the words of sessions")
    return int(info["state"]["messages"]) > 0


async def restore_sessions(access: BrokerAccess, connection: BrokerConnection, directory: Path, position: int) -> int:
    """Copy a backup's sessions into the stream of words; returns the number of records. Needs role `admin`.

    Leaves out sessions that began after `position`, the end of the restored log; one that was opened again after it is
    closed, as that log has it. An existing record stays.
    Raises BackupDamaged, BrokerUnavailable, BrokerMisconfigured.
    """
    name = check_sessions(directory)
    if name is None:
        return 0
    path = directory / name
    await ensure_sessions_stream(access)
    stream = JetStreamSessions(connection)
    later = {
        key_of(record.subject)
        for records in _read(path)
        for record in records
        if _is_head(record) and head_read(record.body, record.position).begun > position
    }
    count = 0
    for records in _read(path):
        for batch in _batches([_as_of(record, position) for record in records], later):
            count += len(batch)
            if await stream.put(batch) is None:  # an interrupted restore has stored some of them
                for record in batch:
                    await stream.put([record])
    return count


def _is_head(record: Record) -> bool:
    return record.subject == key_of(record.subject).head()


def _as_of(record: Record, position: int) -> Record:
    """The record; the head of a session that the log has opened again only after a position is closed."""
    if not _is_head(record) or (head := head_read(record.body, 0)).opened <= position:
        return record
    return record._replace(body=replace(head, opened=head.begun, state="closed").written())


def _batches(records: list[Record], later: set[SessionKey]) -> Iterator[list[NewRecord]]:
    batch: list[NewRecord] = []
    for record in records:
        if key_of(record.subject) in later:
            continue
        if len(batch) == BATCH_RECORDS or sum(len(each.body) for each in batch) + len(record.body) > BATCH_BYTES:
            yield batch
            batch = []
        batch.append(NewRecord(record.subject, record.body, 0))
    if batch:
        yield batch


async def _all(stream: SessionStream) -> AsyncIterator[list[Record]]:
    position = 0
    while records := await stream.after(SESSION_SUBJECTS, position, _READ):
        yield records
        position = records[-1].position


def _read(path: Path) -> Iterator[list[Record]]:
    with pq.ParquetFile(path, pre_buffer=False) as file:
        for batch in file.iter_batches(_READ, use_threads=False):
            yield [Record(*row) for row in zip(*(column.to_pylist() for column in batch.columns), strict=True)]

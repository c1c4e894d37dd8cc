"""A backup whose manifest and files somebody made up is refused before its files are unpacked into memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import orjson
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kledger.contract.errors import BackupDamaged
from ledger.archive import event_file
from ledger.archive.event_file import MOST_EVENTS, SCHEMA, events_by_position, events_of, file_digest, read_leaves
from ledger.backup import sessions
from ledger.backup.checking import check_backup
from ledger.backup.manifest import load, save, segment_name
from ledger.backup.place import SESSIONS
from ledger.backup.restoring import restore
from ledger.backup.sessions import check_sessions, keep_sessions
from ledger.broker.connection import BrokerConnection
from ledger.broker.server import EmbeddedServer
from ledger.event import StoredEvent
from ledger.integrity.chain import Chain
from ledger.sessions.in_memory import MemorySessionStream
from ledger.sessions.subjects import SessionKey
from ledger.wire.publication import error_code
from tests.backup.kept import backed_up, history
from tests.conftest import remove_streams

SAID = 10
MOST = 512 * 1024 * 1024
LESS = MOST // 128
"""The bytes that a file may have where one has more: to write that much takes seconds and a gigabyte of memory."""


def rows(count: int, body: str = "{}") -> pa.Table:
    """So many events that are all alike."""
    row = {"position": 1, "stored_ns": 1, "subject": "ledger.a", "message_id": "m", "body": body, "leaf": bytes(32)}
    columns = [pa.repeat(pa.scalar(row.get(field.name), field.type), count) for field in SCHEMA]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


async def forged(directory: Path, table: pa.Table, said: int, *, repeats: bool = False) -> Path:
    """A backup of one file with these rows, which its manifest says to be `said` events; returns the file."""
    await backed_up(history(SAID), directory)
    manifest = load(directory)
    (segment,) = manifest.segments
    file = directory / segment_name(1, said)
    (directory / segment.file).unlink()
    pq.write_table(table, file, compression="zstd", use_dictionary=repeats)
    chain = Chain.empty().extended([bytes(32)] * said)
    size, digest = file.stat().st_size, file_digest(file)
    listed = replace(segment, file=file.relative_to(directory).as_posix(), last=said, size=size, sha256=digest)
    save(directory, replace(manifest, chain=chain, segments=(replace(listed, head=chain.head),)))
    return file


@pytest.mark.parametrize(
    ("count", "said", "size", "repeats", "most", "told"),
    [
        (MOST_EVENTS * 5, SAID, 2, False, MOST, "has 500,000 events in the place of 10"),
        (SAID - 1, SAID, 2, False, MOST, "has 9 events in the place of 10"),
        (MOST_EVENTS + 1, MOST_EVENTS + 1, 2, False, MOST, "more in it than any event file"),
        (SAID, SAID, LESS // 8, False, LESS, "more in it than any event file"),
        (SAID, SAID, 64 * 1024, True, MOST, "repeats texts as no event file does"),
    ],
    ids=["more rows than events", "fewer rows than events", "absurdly many events", "huge bodies", "one body for all"],
)
async def test_a_forged_file_is_refused_by_its_foot_and_no_row_of_it_is_unpacked(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    said: int,
    size: int,
    repeats: bool,
    most: int,
    told: str,
) -> None:
    assert event_file._MOST_BYTES == MOST
    monkeypatch.setattr(event_file, "_MOST_BYTES", most)
    file = await forged(tmp_path / "b", rows(count, "x" * size), said, repeats=repeats)
    unpacked: list[object] = []
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *_, **__: unpacked.append(1))
    monkeypatch.setattr(pq.ParquetFile, "iter_batches", lambda *_, **__: unpacked.append(1))
    (problem,) = check_backup(tmp_path / "b").problems
    assert told in problem
    content = file.read_bytes()
    readers: list[Callable[[], object]] = [
        lambda: list(event_file.read_segment(file, said)),
        lambda: list(events_by_position(content, said)),
        lambda: events_of(content, said),
        lambda: read_leaves(file, said),
    ]
    for read in readers:
        with pytest.raises(ValueError, match=told):
            read()
    assert unpacked == []


@pytest.mark.parametrize(
    ("count", "said", "size", "repeats", "most", "told"),
    [
        (3, 2, 2, False, MOST, "has 3 records in the place of 2"),
        (2, 2, LESS * 5 // 8, False, LESS, "has more in it than words of sessions are"),
        (2, 2, 1024, True, MOST, "repeats texts as no words of sessions are kept"),
    ],
    ids=["more records than said", "huge bodies", "one body for all"],
)
async def test_forged_words_of_sessions_are_refused_by_their_foot_and_no_row_of_them_is_unpacked(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    said: int,
    size: int,
    repeats: bool,
    most: int,
    told: str,
) -> None:
    assert sessions._MOST_BYTES == MOST
    monkeypatch.setattr(sessions, "_MOST_BYTES", most)
    await backed_up(history(SAID), tmp_path)
    await keep_sessions(MemorySessionStream(), tmp_path)
    about = orjson.loads((tmp_path / SESSIONS).read_bytes())
    schema = pq.read_schema(tmp_path / about["file"])
    (tmp_path / about["file"]).unlink()
    row = {"position": 1, "subject": SessionKey("default", "agent:a", "s").head(), "body": b"x" * size}
    columns = [pa.array([row[field.name]] * count, field.type) for field in schema]
    forged = tmp_path / "forged.words"
    pq.write_table(pa.Table.from_arrays(columns, schema=schema), forged, compression="zstd", use_dictionary=repeats)
    digest = file_digest(forged)
    about |= {"file": f"sessions-{digest[:16]}.words", "sha256": digest, "records": said}
    forged.rename(tmp_path / about["file"])
    (tmp_path / SESSIONS).write_bytes(orjson.dumps(about, option=orjson.OPT_SORT_KEYS))
    unpacked: list[object] = []
    with monkeypatch.context() as reading:
        reading.setattr(pq.ParquetFile, "iter_batches", lambda *_, **__: unpacked.append(1))
        with pytest.raises(BackupDamaged, match=told):
            check_sessions(tmp_path)
    assert unpacked == []
    (problem,) = check_backup(tmp_path).problems
    assert told in problem


@pytest.mark.parametrize(
    "subject",
    ["$JS.API.STREAM.DELETE.OTHERS", "others.a", "ledger", "ledger.", "ledgers.a", "ledger.a b", "ledger.a\r\nPING"],
)
async def test_a_subject_that_no_log_takes_is_refused_before_anything_is_published(
    embedded_server: EmbeddedServer, tmp_path: Path, subject: str
) -> None:
    """A restore publishes as the broker's administrator: what somebody wrote there, the broker would do."""
    access = embedded_server.access
    await remove_streams(access)
    await backed_up([*history(5), StoredEvent(6, 6, subject, b"", "m6")], tmp_path / "b")
    (problem,) = check_backup(tmp_path / "b").problems
    assert f"has the subject {subject!r} at position 6, as no log has" in problem
    admin = await BrokerConnection.open(access, "admin", name="test")
    try:
        await admin.api("STREAM.CREATE.OTHERS", {"name": "OTHERS", "subjects": ["others.>"], "storage": "memory"})
        with pytest.raises(BackupDamaged, match="as no log has"):
            await restore(access, tmp_path / "b")
        info = await admin.api("STREAM.INFO.OTHERS")
        assert not error_code(info), "it is there as before"
        assert info["state"]["messages"] == 0
    finally:
        await admin.api("STREAM.DELETE.OTHERS")
        await admin.close()

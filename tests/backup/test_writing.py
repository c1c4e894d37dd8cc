"""A backup grows by what is new, is of one stream alone, and can be read by DuckDB as it is."""

from __future__ import annotations

import os
import resource
import stat
from pathlib import Path

import duckdb
import pytest

from kledger.contract.errors import BackupDamaged, BackupMismatch, InvalidPayload, LogGap, ServiceFailed
from ledger.backup.checking import check_backup
from ledger.backup.manifest import load, writing_to
from ledger.backup.sessions import check_sessions, keep_sessions
from ledger.backup.witnesses import SignedLog
from ledger.backup.writing import back_up
from ledger.integrity.chain import Chain, leaf_hashes
from ledger.integrity.signing_keys import VerifyingKey
from ledger.sessions.in_memory import MemorySessionStream
from ledger.sessions.port import NewRecord
from ledger.sessions.subjects import SessionKey
from ledger.store.in_memory import MemoryLedger
from tests.backup.kept import WAITS_TO_BE_KILLED, backed_up, history, kept_in, killed_after, odd_events
from tests.integrity.logs import ListedLedger, signed_log
from tests.projections.histories import saved

# Backs a log up that stands in another backup, seven events at a time.
SLOWLY = (
    WAITS_TO_BE_KILLED
    + """
import asyncio, json, sys
from pathlib import Path
from ledger.backup.checking import read_backup
from ledger.backup.writing import back_up
from ledger.event import Head

given = json.loads(sys.stdin.readline())
events = [one.event for kept in read_backup(Path(given["source"])) for one in kept]

class Log:
    async def head(self):
        return Head(len(events), 0)

    async def read(self, start, batch):
        for first in range(start - 1, len(events), 7):
            yield events[first : first + 7]

asyncio.run(back_up(Log(), Path(given["directory"]), told, segment_events=20))
"""
)


async def test_a_second_run_adds_what_is_new_and_leaves_every_file_as_it_was(tmp_path: Path) -> None:
    log = [*history(25), *odd_events(26)]
    first = await backed_up(log[:25], tmp_path / "b")
    assert (first.position, first.added, first.files) == (25, 25, 3)
    before = {file.name: file.read_bytes() for file in (tmp_path / "b" / "events").iterdir()}
    second = await backed_up(log, tmp_path / "b")
    assert (second.position, second.added, second.files, second.segments) == (31, 6, 1, 4)
    after = {file.name: file.read_bytes() for file in (tmp_path / "b" / "events").iterdir()}
    assert {name: after[name] for name in before} == before
    third = await backed_up(log, tmp_path / "b")
    assert (third.position, third.added, third.files) == (31, 0, 0)
    assert kept_in(tmp_path / "b") == log
    chain = Chain.empty().extended(leaf_hashes(log))
    assert (third.head, third.root) == (chain.head.hex(), chain.root().hex())
    assert check_backup(tmp_path / "b").problems == []


async def test_an_empty_log_is_backed_up_too(tmp_path: Path) -> None:
    assert (await back_up(MemoryLedger(), tmp_path / "b")).position == 0
    assert check_backup(tmp_path / "b").problems == []
    assert (await backed_up(history(3), tmp_path / "b")).added == 3


async def test_duckdb_reads_the_files_and_finds_text_in_them(tmp_path: Path) -> None:
    await backed_up([*history(12), *odd_events(13)], tmp_path / "b")
    files = str(tmp_path / "b" / "events" / "*.parquet")
    with duckdb.connect() as con:
        found = con.execute(
            "SELECT position, body->>'$.data.content', make_timestamp_ns(stored_ns)::VARCHAR FROM read_parquet(?) "
            "WHERE body LIKE '%第 7 号%'",
            [files],
        ).fetchall()
        assert [(position, content[:10]) for position, content, _ in found] == [(8, "第 7 号备件在仓库")]
        assert found[0][2].startswith("2026-")
        assert con.execute(
            "SELECT count(*), count(body), count(body_bytes) FROM read_parquet(?)", [files]
        ).fetchone() == (
            18,
            17,
            1,
        )


async def test_only_its_owner_may_read_a_backup(tmp_path: Path) -> None:
    await backed_up(history(3), tmp_path / "b")
    for path in [tmp_path / "b", *(tmp_path / "b").rglob("*")]:
        assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0, path


@pytest.mark.parametrize("count", [5, 24, 25, 40])
async def test_the_backup_of_another_stream_is_refused_and_left_alone(tmp_path: Path, count: int) -> None:
    await backed_up(history(25), tmp_path / "b")
    others = MemoryLedger()
    await others.append_many([saved(f"other-{n}") for n in range(count)])
    before = (tmp_path / "b" / "manifest.json").read_bytes()
    with pytest.raises(BackupMismatch):
        await back_up(others, tmp_path / "b")
    assert (tmp_path / "b" / "manifest.json").read_bytes() == before


@pytest.mark.parametrize("lost", [1, 2, 24])
async def test_a_log_that_lost_its_last_events_is_refused_and_the_backup_left_alone(tmp_path: Path, lost: int) -> None:
    await backed_up(history(25), tmp_path / "b")
    before = (tmp_path / "b" / "manifest.json").read_bytes()
    with pytest.raises(BackupMismatch):
        await backed_up(history(25)[:-lost], tmp_path / "b")
    assert (tmp_path / "b" / "manifest.json").read_bytes() == before


async def test_a_directory_that_holds_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "one.txt").write_text("dear")
    with pytest.raises(BackupMismatch, match="holds no backup"):
        await backed_up(history(3), tmp_path / "letters")
    (tmp_path / "file").write_text("x")
    with pytest.raises(InvalidPayload, match="cannot be written"):
        await backed_up(history(3), tmp_path / "file")


async def test_two_backups_into_one_directory_at_once_are_refused(tmp_path: Path) -> None:
    with writing_to(tmp_path / "b"), pytest.raises(BackupMismatch, match="under way"):
        await backed_up(history(3), tmp_path / "b")


async def test_a_hole_in_the_log_keeps_what_comes_before_it(tmp_path: Path) -> None:
    log = history(30)
    with pytest.raises(LogGap):
        await back_up(ListedLedger([*log[:17], None, *log[18:]]), tmp_path / "b", segment_events=10)
    assert load(tmp_path / "b").position == 17
    assert check_backup(tmp_path / "b").problems == []
    assert (await backed_up(log, tmp_path / "b")).position == 30
    with pytest.raises(BackupMismatch, match="kledger repair"):
        await back_up(ListedLedger([*log[:29], None]), tmp_path / "b")


async def test_a_missing_or_shorter_file_is_noticed_before_anything_is_added(tmp_path: Path) -> None:
    await backed_up(history(25), tmp_path / "b")
    file = next((tmp_path / "b" / "events").iterdir())
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(BackupDamaged, match=file.name):
        await backed_up(history(30), tmp_path / "b")
    file.unlink()
    with pytest.raises(BackupDamaged, match="missing"):
        await backed_up(history(30), tmp_path / "b")


async def test_a_backup_that_is_killed_leaves_the_earlier_one_and_goes_on_from_it(tmp_path: Path) -> None:
    directory, log = tmp_path / "b", history(150)
    await backed_up(log, tmp_path / "source")
    await backed_up(log[:15], directory)
    reached = [15]
    for lines in (1, 4, 9):
        await killed_after(lines, SLOWLY, {"source": str(tmp_path / "source"), "directory": str(directory)})
        checked = check_backup(directory)
        assert checked.problems == []
        reached.append(checked.position)
        assert kept_in(directory) == log[: reached[-1]]
    assert reached == sorted(reached)
    assert 15 < reached[-1] < 150
    (directory / "events" / "000000000000003-000000000000017.parquet").write_bytes(b"renamed and never named")
    assert (await backed_up(log, directory)).position == 150
    assert kept_in(directory) == log
    assert not list(directory.rglob("*.part"))
    assert len(list((directory / "events").iterdir())) == len(load(directory).segments)


async def test_a_disk_without_room_leaves_the_backup_as_it_was_and_says_so(tmp_path: Path) -> None:
    log = [*history(10), *(one._replace(body=os.urandom(40_000)) for one in history(40)[10:])]
    await backed_up(log[:10], tmp_path / "b")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
    try:
        with pytest.raises(ServiceFailed, match="Make room"):
            await backed_up(log, tmp_path / "b")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.rglob("*.part"))
    assert (check_backup(tmp_path / "b").problems, load(tmp_path / "b").position) == ([], 10)
    assert (await backed_up(log, tmp_path / "b")).position == 40


async def test_a_disk_without_room_for_the_words_of_sessions_keeps_those_of_before_and_no_part(tmp_path: Path) -> None:
    await backed_up(history(3), tmp_path / "b")
    stream = MemorySessionStream()
    key = SessionKey("default", "user:ada", "s1")
    await stream.put([NewRecord(key.one("said", "m1"), os.urandom(50_000), 0)])
    await keep_sessions(stream, tmp_path / "b")
    kept = check_sessions(tmp_path / "b")
    for number in range(2, 8):
        await stream.put([NewRecord(key.one("said", f"m{number}"), os.urandom(50_000), 0)])
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, before[1]))
    try:
        with pytest.raises(OSError, match="too large"):
            await keep_sessions(stream, tmp_path / "b")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list(tmp_path.rglob("*.part"))
    assert check_sessions(tmp_path / "b") == kept


async def test_a_signature_that_comes_after_the_backup_is_kept_by_the_next_run(tmp_path: Path) -> None:
    events, _ = signed_log(tmp_path / "data", 12, 5)
    assert (await back_up(ListedLedger(events), tmp_path / "b")).signed == 0
    later = await back_up(ListedLedger(events), tmp_path / "b", signed=SignedLog.of_node(tmp_path / "data"))
    assert (later.added, later.signed) == (0, 12)


async def test_what_was_signed_is_compared_and_kept_with_the_backup(tmp_path: Path) -> None:
    events, files = signed_log(tmp_path / "data", 23, 5)
    signed = SignedLog.of_node(tmp_path / "data")
    assert (await back_up(ListedLedger(events[:13]), tmp_path / "b", signed=signed)).signed == 10
    assert (await back_up(ListedLedger(events), tmp_path / "b", signed=signed)).signed == 23
    key = VerifyingKey.from_text(next((files.keys / "public").iterdir()).read_text())
    found = check_backup(tmp_path / "b", key=key)
    assert (found.problems, found.signed and found.signed["key"]) == ([], key.id)
    changed = [*events[:6], events[6]._replace(body=b"other"), *events[7:]]
    with pytest.raises(BackupMismatch, match="not those that were signed"):
        await back_up(ListedLedger(changed), tmp_path / "c", signed=signed)
    assert not (tmp_path / "c").exists()


async def test_a_backup_signed_by_somebody_else_or_by_nobody_is_not_the_one_that_is_asked_for(tmp_path: Path) -> None:
    events, files = signed_log(tmp_path / "data", 6, 5)
    key = VerifyingKey.from_text(next((files.keys / "public").iterdir()).read_text())
    forged, _ = signed_log(tmp_path / "theirs", 6, 5)
    await back_up(ListedLedger(forged), tmp_path / "b", signed=SignedLog.of_node(tmp_path / "theirs"))
    await back_up(ListedLedger(events), tmp_path / "unsigned")
    for directory in ("b", "unsigned"):
        assert check_backup(tmp_path / directory).problems == []
        with pytest.raises(BackupMismatch, match=key.id):
            check_backup(tmp_path / directory, key=key)

"""A backup in an object store is the same files under the same promises, and says what the store refused."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO

import duckdb
import pytest
from typer.testing import CliRunner

from kledger.contract.errors import BackupDamaged, BackupMismatch, InvalidPayload, NoBackup, ObjectStoreFailed
from ledger.archive.archived import Archived
from ledger.backup.checking import check_backup
from ledger.backup.fetching import FETCHED, brought_here, fetch
from ledger.backup.object_store import ObjectStore
from ledger.backup.opening import opened
from ledger.backup.writing import BackedUp, back_up
from ledger.event import StoredEvent
from producers.cli.main import app
from projections.analysts.quack import load_extensions
from tests.archive.archives import archived
from tests.backup.kept import history, kept_in, odd_events
from tests.backup.stores import ACCESS, BUCKET, SECRET, Store, object_store
from tests.integrity.logs import ListedLedger
from tests.journeys.running_node import caught_up, items, result_of, running

LOG = [*history(34), *odd_events(35)]
THERE = f"s3://{BUCKET}/node/one"


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    with object_store(tmp_path / "store") as running_store:
        for name, value in running_store.environment.items():
            monkeypatch.setenv(name, value)
        yield running_store


async def kept(
    log: Sequence[StoredEvent], where: str = THERE, data: Path | None = None, segment_events: int = 10
) -> BackedUp:
    """A backup of a log in the store."""
    of_node = Archived.of_node(data) if data is not None else None
    with opened(where) as place:
        return await back_up(ListedLedger(log), place, archived=of_node, segment_events=segment_events)


def problems(where: str = THERE) -> list[str]:
    with opened(where) as place:
        return check_backup(place).problems


def fetched(directory: Path, where: str = THERE) -> list[StoredEvent]:
    with opened(where) as place:
        fetch(place, directory)
    return kept_in(directory)


async def test_a_backup_there_is_the_log_and_a_second_run_sends_what_is_new(store: Store, tmp_path: Path) -> None:
    first = await kept(LOG[:25])
    assert (first.directory, first.position, first.files) == (THERE, 25, 3)
    before = store.objects()
    store.stored.clear()
    second = await kept(LOG)
    assert (second.position, second.added, second.files) == (40, 15, 2)
    assert {key for key in store.stored if key.endswith(".parquet")} == set(store.objects()) - set(before)
    assert all(store.objects()[key] == content for key, content in before.items() if key.endswith(".parquet"))
    assert (await kept(LOG)).files == 0
    assert problems() == []
    assert fetched(tmp_path / "here") == LOG


async def test_duckdb_reads_the_events_where_they_are(store: Store) -> None:
    await kept(LOG)
    with duckdb.connect() as con:
        load_extensions(con)
        con.execute(
            f"CREATE SECRET (TYPE s3, PROVIDER config, KEY_ID '{ACCESS}', SECRET '{SECRET}', "
            f"ENDPOINT '127.0.0.1:{store.port}', URL_STYLE 'path', USE_SSL false)"
        )
        found = con.execute(f"SELECT count(*), max(position) FROM '{THERE}/events/*.parquet'").fetchone()
    assert found == (40, 40)


async def test_the_whole_bucket_can_be_the_backups(store: Store, tmp_path: Path) -> None:
    await kept(LOG, f"s3://{BUCKET}")
    assert "manifest.json" in store.objects()
    assert fetched(tmp_path / "here", f"s3://{BUCKET}") == LOG


async def test_segments_of_the_archive_are_sent_as_they_are_and_take_the_place_of_small_files(
    store: Store, tmp_path: Path
) -> None:
    for end in (5, 10, 15):
        await kept(LOG[:end])
    await archived(tmp_path / "data", LOG, 20)
    await kept(LOG, data=tmp_path / "data")
    segments = sorted((tmp_path / "data" / "archive" / "events").glob("*/events.parquet"))
    objects = store.objects("node/one/events/")
    assert sorted(objects.values()) == sorted(path.read_bytes() for path in segments)
    assert len(segments) == 2
    assert fetched(tmp_path / "here") == LOG


async def test_a_bucket_that_is_not_there_is_named(store: Store) -> None:
    with pytest.raises(ObjectStoreFailed, match="there is no bucket elsewhere") as failed:
        await kept(LOG, "s3://elsewhere/node")
    assert failed.value.details == {"reason": "no_bucket"}


async def test_somebody_without_rights_is_told_so(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "stranger")
    with pytest.raises(ObjectStoreFailed, match="AWS_ACCESS_KEY_ID") as failed:
        await kept(LOG)
    assert failed.value.details == {"reason": "no_rights"}
    assert store.objects() == {}


async def test_a_server_that_is_not_there_is_no_connection(store: Store) -> None:
    store.stops_after = 0
    with pytest.raises(ObjectStoreFailed, match="run it again") as failed:
        await kept(LOG)
    assert failed.value.details == {"reason": "no_connection"}


@pytest.mark.parametrize("objects", [1, 2, 4, 7])
async def test_a_connection_that_is_cut_leaves_what_was_sent_and_the_next_run_goes_on(
    store: Store, tmp_path: Path, objects: int
) -> None:
    store.stops_after = objects
    with pytest.raises(ObjectStoreFailed):
        await kept(LOG)
    store.stops_after = None
    assert problems() == []
    named = [key for key in store.objects() if key.endswith(".parquet")]
    store.stored.clear()
    done = await kept(LOG)
    assert (done.position, problems(), fetched(tmp_path / "here")) == (40, [], LOG)
    listed = json.loads(store.objects()["node/one/manifest.json"])["backup"]["segments"]
    sent_again = set(named) & set(store.stored)
    assert len(sent_again) <= 1, "at most the one that no manifest named yet"
    assert {f"node/one/{each['file']}" for each in listed} == {
        key for key in store.objects() if key.endswith(".parquet")
    }


async def test_what_is_fetched_is_for_its_owner_alone_and_nothing_else_is_fetched(store: Store, tmp_path: Path) -> None:
    await kept(LOG)
    (store.folder / BUCKET / "node" / "one" / "letter.txt").write_text("dear")
    before = os.umask(0)
    try:
        assert fetched(tmp_path / "here") == LOG
    finally:
        os.umask(before)
    assert not [path for path in (tmp_path / "here").rglob("*") if path.stat().st_mode & 0o077]
    assert sorted(path.name for path in (tmp_path / "here").iterdir()) == ["events", "manifest.json"]


async def test_an_object_with_other_bytes_is_named_and_nothing_is_made_from_it(store: Store, tmp_path: Path) -> None:
    await kept(LOG)
    file = sorted((store.folder / BUCKET / "node" / "one" / "events").iterdir())[1]
    content = bytearray(file.read_bytes())
    content[50] ^= 1
    file.write_bytes(content)
    (problem,) = problems()
    assert problem.startswith(f"events/{file.name} was changed")
    with pytest.raises(BackupDamaged, match=file.name):
        fetched(tmp_path / "here")
    file.unlink()
    assert problems() == [f"events/{file.name} is missing"]
    with pytest.raises(BackupDamaged, match="is missing"):
        fetched(tmp_path / "here")
    with pytest.raises(BackupDamaged, match=file.name):
        await kept([*LOG, *odd_events(41)])


async def test_what_is_something_else_is_left_alone(store: Store) -> None:
    (store.folder / BUCKET / "node" / "one").mkdir(parents=True)
    (store.folder / BUCKET / "node" / "one" / "letter.txt").write_text("dear")
    with pytest.raises(BackupMismatch, match="holds no backup"):
        await kept(LOG)
    assert store.objects() == {"node/one/letter.txt": b"dear"}
    with pytest.raises(NoBackup, match="so it is no backup"):
        problems()


async def test_a_run_that_finds_another_one_at_work_stops(store: Store) -> None:
    await kept(LOG[:5])
    with opened(THERE) as mine:
        mine.read("manifest.json")
        await kept(LOG[:15])
        with pytest.raises(BackupMismatch, match="at the same time"):
            mine.write("manifest.json", b"{}")
    assert problems() == []


async def test_a_lock_is_gone_with_its_run_and_one_that_goes_as_it_is_opened_keeps_nobody_in(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # other runs of the tests have locks of their own
    await kept(LOG[:5])
    with opened(THERE) as mine, contextlib.suppress(ZeroDivisionError), mine.only_writer():
        assert len(list(tmp_path.glob("*.lock"))) == 1
        raise ZeroDivisionError
    assert not list(tmp_path.glob("*.lock"))
    flock, ended = fcntl.flock, list[bool]()

    def after_its_end(file: IO[str], how: int) -> None:
        """The run that held it ends between the opening of the file and the lock."""
        if not ended:
            ended.append(True)
            next(tmp_path.glob("*.lock")).unlink()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", after_its_end)
    with opened(THERE) as mine, mine.only_writer(), opened(THERE) as other:
        with pytest.raises(BackupMismatch, match="under way"), other.only_writer():
            pass
        assert len(list(tmp_path.glob("*.lock"))) == 1
    assert not list(tmp_path.glob("*.lock"))


async def test_a_bucket_of_the_same_name_in_another_store_is_another_place(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(THERE) as mine, mine.only_writer(), object_store(tmp_path / "other") as other:
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", other.environment["AWS_ENDPOINT_URL_S3"])
        assert (await kept(LOG)).position == 40
        assert other.objects()
        assert store.objects() == {}


async def test_a_run_that_was_second_in_an_empty_place_takes_nothing_of_the_first(store: Store) -> None:
    theirs = store.folder / BUCKET / "node" / "one" / "manifest.json"
    with opened(THERE) as mine, contextlib.suppress(BackupMismatch), mine.only_writer():
        theirs.parent.mkdir(parents=True)
        theirs.write_bytes(b"of another machine")
        with pytest.raises(BackupMismatch, match="at the same time"):
            mine.write("manifest.json", b"{}")
        raise BackupMismatch("as the run ends")
    assert store.objects()["node/one/manifest.json"] == b"of another machine"


async def test_what_is_fetched_while_a_run_writes_is_one_backup(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await kept(LOG[:15])
    listed = ObjectStore.sizes

    def after_another_run(place: ObjectStore) -> Mapping[str, int]:
        monkeypatch.setattr(ObjectStore, "sizes", listed)
        asyncio.run(kept(LOG))
        return listed(place)

    monkeypatch.setattr(ObjectStore, "sizes", after_another_run)
    there = await asyncio.to_thread(fetched, tmp_path / "here")
    assert there == LOG[:15]
    assert len(store.objects("node/one/events/")) > len(list((tmp_path / "here" / "events").iterdir()))


async def test_what_was_fetched_for_a_restore_that_is_refused_goes(store: Store, tmp_path: Path) -> None:
    await kept(LOG)
    with pytest.raises(BackupMismatch), brought_here(THERE, tmp_path / "data"):
        raise BackupMismatch("it is signed by another node")
    assert list((tmp_path / "data").iterdir()) == []


async def test_what_was_fetched_is_not_fetched_again(store: Store, tmp_path: Path) -> None:
    await kept(LOG)
    data = tmp_path / "data"
    directory = data / FETCHED
    with contextlib.suppress(RuntimeError), brought_here(THERE, data) as here:
        assert (here, kept_in(here)) == (directory, LOG)
        raise RuntimeError("the broker went away")
    (directory / "events" / "000000000000011-000000000000020.parquet").write_bytes(b"half of it")
    store.read.clear()
    with brought_here(THERE, data) as directory:
        assert kept_in(directory) == LOG
    events = {key for key in store.read if key.endswith(".parquet")}
    assert events == {"node/one/events/000000000000011-000000000000020.parquet"}
    assert list(data.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    [
        *("s3://", "s3://B", "s3:///x", "s3://bucket/../x", "s3://user:key@bucket/x", "s3://b//c"),
        *("S3://bucket/x", "gs://bucket/x", "https://bucket.example/x", "file:///backups/x"),
    ],
)
def test_an_address_that_is_none_is_refused_and_taken_for_no_directory(text: str) -> None:
    with pytest.raises(InvalidPayload, match="s3://BUCKET"), opened(text):
        pass


@pytest.mark.parametrize("server", ["localhost:9000", "ftp://x", "http://", "http://host/path"])
def test_a_server_that_is_none_is_refused_and_the_variable_named(
    store: Store, monkeypatch: pytest.MonkeyPatch, server: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", server)
    with pytest.raises(InvalidPayload, match="AWS_ENDPOINT_URL_S3"), opened(THERE):
        pass


def test_a_node_is_backed_up_there_and_restored_from_there(store: Store, tmp_path: Path) -> None:
    with running(tmp_path / "data", env=store.environment) as node, node.client() as ledger:
        ledger.save_many(items(1_100))
        scribe = ledger.acting_as(user="wang")
        saved = scribe.save("备份", "每天晚上备份。", ["plan"], id="backup-there", scopes=["public"])
        scribe.session("s1").append([{"id": "m-1", "role": "user", "content": "Where is the backup?"}])
        assert saved["position"]
        caught_up(ledger)
        backup = result_of(ledger, "backup", into=THERE)
        assert (backup["directory"], backup["session_records"] > 0) == (THERE, True)
        digest = result_of(ledger, "verify")["live"]["digest"]
        for bad, code in (("s3://no", "invalid_payload"), ("relative", "invalid_payload")):
            with pytest.raises(InvalidPayload) as refused:
                ledger.start_job("backup", into=bad)
            assert refused.value.code == code
    new = tmp_path / "new"
    assert CliRunner().invoke(app, ["backup", "--check", THERE]).exit_code == 0
    ran = CliRunner().invoke(app, ["restore-backup", THERE, "--data", str(new), "--json"])
    assert ran.exit_code == 0, ran.stderr
    proof = json.loads(ran.stdout)
    assert (proof["head"], proof["archived"], proof["keys"], proof["session_records"] > 0) == (
        backup["head"],
        1,
        2,
        True,
    )
    assert not (new / FETCHED).exists()
    shutil.copy(tmp_path / "data" / "keys" / "master.key", new / "keys")
    with running(new, env=store.environment) as node, node.client() as ledger:
        caught_up(ledger)
        verified = result_of(ledger, "verify")
        assert (verified["equal"], verified["live"]["digest"]) == (True, digest)
        result_of(ledger, "forget", subject="user:wang")
        result_of(ledger, "backup", into=THERE)
    objects = store.objects("node/one/")
    records = json.loads(objects["node/one/keys.json"])["records"]
    assert not [name for name in records if name.startswith("key.")], "the key of who was forgotten is gone there"
    assert len([key for key in objects if key.endswith(".words")]) == 1
    assert json.loads(objects["node/one/manifest.json"])["backup"]["beside"] == ["keys.json", "sessions.json"]
    ran = CliRunner().invoke(app, ["repair", "--from", THERE, "--data", str(new)])
    assert (ran.exit_code, "nothing to mend" in ran.stdout) == (0, True), ran.stderr

"""What a broker lost or changed comes back from a backup, and the stream is not touched before all of it is on disk."""

from __future__ import annotations

import random
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kledger.contract.errors import BackupMismatch, LogGap, NotRepairable, RestoreUnfinished
from ledger.backup import repairing
from ledger.backup.checking import check_backup
from ledger.backup.keys import BroughtBack, keep_keys, kept_keys
from ledger.backup.place import BESIDE
from ledger.backup.repairing import Damage, find_damage, repair
from ledger.backup.restoring import restore
from ledger.backup.sessions import check_sessions
from ledger.backup.witnesses import SignedLog
from ledger.backup.writing import back_up
from ledger.broker.access import KEYS_STREAM, BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.server import EmbeddedServer
from ledger.broker.stream_setup import ensure_stream
from ledger.event import StoredEvent
from ledger.privacy.vault_jetstream import JetStreamVault, ensure_keys_bucket
from ledger.sessions.jetstream import JetStreamSessions, ensure_sessions_stream
from ledger.sessions.port import NewRecord
from ledger.sessions.subjects import SessionKey
from ledger.store.jetstream import JetStreamLedger
from tests.backup.kept import all_of, backed_up, history
from tests.conftest import LoopThread, saved
from tests.integrity.logs import ListedLedger, signed_log

COUNT, IN_BACKUP = 120, 100
MASTER = bytes(range(32))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A stopped broker with COUNT events, in `broker`, and a backup of the first IN_BACKUP in `backup`."""
    directory = tmp_path_factory.mktemp("whole")
    loop = LoopThread()

    async def make() -> None:
        async with broker(directory / "broker") as access:
            await ensure_stream(access)
            ledger = await JetStreamLedger.connect(access)
            await ledger.append_many([saved(f"条目-{n}", content=f"第 {n} 号" * 20) for n in range(IN_BACKUP)])
            await back_up(ledger, directory / "backup", segment_events=30)
            await ledger.append_many([saved(f"later-{n}") for n in range(COUNT - IN_BACKUP)])
            await back_up(ledger, directory / "all")
            await ledger.close()

    loop.run(make())
    yield directory
    loop.close()


@asynccontextmanager
async def broker(directory: Path) -> AsyncIterator[BrokerAccess]:
    server = EmbeddedServer(directory)
    try:
        yield await server.start()
    finally:
        await server.stop()


def messages(directory: Path) -> Path:
    (found,) = (file for file in directory.rglob("*.blk") if "LEDGER/msgs" in file.as_posix())
    return found


def flip(file: Path, seed: int) -> None:
    """Change one byte of a message that the backup has."""
    content = bytearray(file.read_bytes())
    content[random.Random(seed).randrange(100, len(content) * 6 // 10)] ^= 0x11
    file.write_bytes(content)


def edit(file: Path, _seed: int) -> None:
    content = file.read_bytes()
    assert content.count("第 57 号".encode()) > 1
    file.write_bytes(content.replace("第 57 号".encode(), "第 75 号".encode()))


DAMAGES: dict[str, Callable[[Path, int], None]] = {"a byte": flip, "a text": edit}


@pytest.mark.parametrize("damage", DAMAGES)
async def test_what_was_changed_on_disk_is_repaired_to_the_same_events(
    whole: Path, tmp_path: Path, damage: str
) -> None:
    shutil.copytree(whole / "broker", tmp_path / "broker")
    DAMAGES[damage](messages(tmp_path / "broker"), len(damage))
    steps: list[str] = []
    async with broker(tmp_path / "broker") as access:
        repaired = await repair(access, whole / "backup", tmp_path / "new", on_step=steps.append)
        ledger = await JetStreamLedger.connect(access)
        assert (await back_up(ledger, tmp_path / "after")).head == check_backup(whole / "all").head
        await ledger.append(saved("goes on"))
        await ledger.close()
    assert repaired.restored
    assert repaired.restored.head == check_backup(whole / "all").head == check_backup(tmp_path / "new").head
    assert [last - first for first, last in [*repaired.missing, *repaired.changed]] == [0]
    assert steps.index("reading it back") < steps.index("making the stream anew")


async def _events_of(access: BrokerAccess) -> int:
    """How many events a new reader finds in the log, from its first to its last."""
    ledger = await JetStreamLedger.connect(access)
    events = await all_of(ledger)
    await ledger.close()
    return len(events)


async def test_the_repair_that_a_gap_names_makes_the_log_whole(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "broker", tmp_path / "broker")
    flip(messages(tmp_path / "broker"), 6)
    async with broker(tmp_path / "broker") as access:
        ledger = await JetStreamLedger.connect(access)
        with pytest.raises(LogGap, match="kledger repair"):
            await all_of(ledger)
        await ledger.close()
        await repair(access, whole / "all", tmp_path / "new")
        assert await _events_of(access) == COUNT


async def test_what_was_cut_off_comes_back_by_the_repair_that_a_reader_names(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "broker", tmp_path / "broker")
    file = messages(tmp_path / "broker")
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    (file.parent / "index.db").unlink()  # so that the broker believes what is left
    async with broker(tmp_path / "broker") as access:
        ledger = await JetStreamLedger.connect(access)
        assert (await ledger.head()).position < COUNT
        with pytest.raises(LogGap, match="kledger repair"):
            await anext(ledger.read(COUNT + 1))
        await ledger.close()
        await repair(access, whole / "all", tmp_path / "new")
        assert await _events_of(access) == COUNT


async def test_a_lost_message_file_is_repaired_when_the_backup_has_all_of_it(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "broker", tmp_path / "broker")
    messages(tmp_path / "broker").unlink()
    async with broker(tmp_path / "broker") as access:
        repaired = await repair(access, whole / "all", tmp_path / "new")
        assert repaired.missing == [(1, COUNT)]
        ledger = await JetStreamLedger.connect(access)
        assert (await back_up(ledger, whole / "all")).added == 0
        await ledger.close()


async def test_the_new_backup_has_the_keys_of_persons_and_the_words_of_sessions(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "broker", tmp_path / "broker")
    shutil.copytree(whole / "backup", tmp_path / "backup")
    flip(messages(tmp_path / "broker"), 4)
    async with broker(tmp_path / "broker") as access:
        await ensure_keys_bucket(access)
        vault = await JetStreamVault.open(access, MASTER)
        for person in ("user:ada", "user:bob"):
            await vault.obtain(person)
        await keep_keys(vault.connection, tmp_path / "backup")
        gone = await vault.destroy("user:bob", by="user:local", at="2026-03-05T12:00:00Z", receipt="r-1")
        await ensure_sessions_stream(access)
        words = SessionKey("default", "user:ada", "s1").scratchpad()
        assert await JetStreamSessions(vault.connection).put([NewRecord(words, b"{}", 0)])
        repaired = await repair(access, tmp_path / "backup", tmp_path / "new")
        assert (await vault.look(["user:bob"]))["user:bob"] == gone
        names = {subject.rpartition("KLEDGER_KEYS.")[2] for subject in kept_keys(tmp_path / "new")}
        assert repaired.restored
        await vault.close()
    assert "key.user=3Aada" in names
    assert "key.user=3Abob" not in names, "who was forgotten since the backup stays forgotten"
    assert check_sessions(tmp_path / "new")
    for name in BESIDE:
        shutil.copytree(tmp_path / "new", tmp_path / name)
        (tmp_path / name / name).unlink()
        assert [problem.split()[0] for problem in check_backup(tmp_path / name).problems] == [name]


async def test_where_the_vault_is_gone_the_keys_are_those_of_the_backup(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "broker", tmp_path / "broker")
    shutil.copytree(whole / "backup", tmp_path / "backup")
    flip(messages(tmp_path / "broker"), 4)
    async with broker(tmp_path / "broker") as access:
        await ensure_keys_bucket(access)
        vault = await JetStreamVault.open(access, MASTER)
        secret = (await vault.obtain("user:ada")).witness.secret
        await keep_keys(vault.connection, tmp_path / "backup")
        await vault.close()
        admin = await BrokerConnection.open(access, "admin", name="test")
        await admin.api(f"STREAM.DELETE.{KEYS_STREAM}")
        await admin.close()
        await ensure_keys_bucket(access)
        await (await JetStreamVault.open(access, MASTER)).close()  # as a node leaves it that was started meanwhile
        assert (await repair(access, tmp_path / "backup", tmp_path / "new")).restored
        vault = await JetStreamVault.open(access, MASTER)
        assert (await vault.obtain("user:ada")).witness.secret == secret
        await vault.close()
    assert kept_keys(tmp_path / "new") == kept_keys(tmp_path / "backup")
    assert (tmp_path / "new" / "keys.json").stat().st_mode & 0o077 == 0


async def test_keys_come_back_also_where_the_stream_has_lost_nothing(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "broker", tmp_path / "broker")
    shutil.copytree(whole / "backup", tmp_path / "backup")
    async with broker(tmp_path / "broker") as access:
        await ensure_keys_bucket(access)
        vault = await JetStreamVault.open(access, MASTER)
        secret = (await vault.obtain("user:ada")).witness.secret
        await keep_keys(vault.connection, tmp_path / "backup")
        admin = await BrokerConnection.open(access, "admin", name="test")
        await admin.api(f"STREAM.DELETE.{KEYS_STREAM}")
        await admin.close()
        repaired = await repair(access, tmp_path / "backup", tmp_path / "new")
        assert (repaired.restored, repaired.keys) == (None, BroughtBack(2))
        assert (await vault.obtain("user:ada")).witness.secret == secret
        await vault.close()
    assert not (tmp_path / "new").exists()


async def test_events_lost_behind_the_backup_are_named_and_nothing_is_touched(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "broker", tmp_path / "broker")
    file = messages(tmp_path / "broker")
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    async with broker(tmp_path / "broker") as access:
        ledger = await JetStreamLedger.connect(access)
        before = await ledger.status()
        with pytest.raises(NotRepairable, match=f"{IN_BACKUP + 1} to {COUNT}") as refused:
            await repair(access, whole / "backup", tmp_path / "new")
        assert refused.value.details["positions"] == [(IN_BACKUP + 1, COUNT)]
        assert await ledger.status() == before
        await ledger.close()
    assert not (tmp_path / "new").exists()


async def test_a_whole_stream_is_left_as_it_is(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "broker", tmp_path / "broker")
    async with broker(tmp_path / "broker") as access:
        assert (await repair(access, whole / "backup", tmp_path / "new")).restored is None
    assert not (tmp_path / "new").exists()


async def test_a_repair_that_ends_after_the_stream_was_removed_is_ended_by_a_restore(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Crash(Exception):
        pass

    async def crash(*_: object, **__: object) -> None:
        raise Crash

    shutil.copytree(whole / "broker", tmp_path / "broker")
    flip(messages(tmp_path / "broker"), 3)
    async with broker(tmp_path / "broker") as access:
        with monkeypatch.context() as patched:
            patched.setattr(repairing, "restore", crash)
            with pytest.raises(Crash):
                await repair(access, whole / "backup", tmp_path / "new")
        assert (await restore(access, tmp_path / "new")).head == check_backup(whole / "all").head
        ledger = await JetStreamLedger.connect(access)
        assert len(await all_of(ledger)) == COUNT
        await ledger.close()


async def found(log: list[StoredEvent | None], directory: Path, damaged: set[int] | None = None) -> Damage:
    return await find_damage(ListedLedger(log), directory, damaged=damaged or set())


async def test_the_comparison_tells_missing_changed_and_lost_apart(tmp_path: Path) -> None:
    log = history(30)
    await backed_up(log[:20], tmp_path / "b")
    assert (await found([*log], tmp_path / "b")).is_none
    other = log[4]._replace(stored_ns=7)
    broken: list[StoredEvent | None] = [*log[:4], other, *log[5:8], None, None, *log[10:24], None, *log[25:]]
    damage = await found(broken, tmp_path / "b", {27})
    assert (damage.missing, damage.changed, damage.beyond) == ([(9, 10)], [(5, 5)], [(25, 25), (27, 27)])
    cut = await found([*log[:11]], tmp_path / "b")
    assert (cut.missing, cut.beyond) == ([(12, 20)], [])
    swapped: list[StoredEvent | None] = [*log[:2], log[3], log[2], *log[4:]]
    assert (await found(swapped, tmp_path / "b")).changed == [(3, 4)]
    with pytest.raises(BackupMismatch, match="not one of this stream"):
        await found([one._replace(stored_ns=one.stored_ns + 1) for one in log], tmp_path / "b")


async def test_what_was_signed_behind_backup_and_stream_is_lost_and_named(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "broker", tmp_path / "broker")
    signed_log(tmp_path / "data", COUNT + 10, COUNT + 10)
    flip(messages(tmp_path / "broker"), 5)
    async with broker(tmp_path / "broker") as access:
        with pytest.raises(NotRepairable, match=f"{COUNT + 1} to {COUNT + 10}"):
            await repair(access, whole / "backup", tmp_path / "new", signed=SignedLog.of_node(tmp_path / "data"))


async def test_a_log_that_is_not_what_was_signed_does_not_take_the_place_of_the_stream(
    whole: Path, tmp_path: Path
) -> None:
    shutil.copytree(whole / "broker", tmp_path / "broker")
    signed_log(tmp_path / "data", COUNT - 5, COUNT)
    flip(messages(tmp_path / "broker"), 5)
    async with broker(tmp_path / "broker") as access:
        ledger = await JetStreamLedger.connect(access)
        before = await ledger.status()
        with pytest.raises(BackupMismatch, match="not those that were signed"):
            await repair(access, whole / "backup", tmp_path / "new", signed=SignedLog.of_node(tmp_path / "data"))
        assert await ledger.status() == before
        await ledger.close()


async def test_a_node_does_not_start_on_a_stream_that_is_being_made_anew(tmp_path: Path) -> None:
    await backed_up(history(30), tmp_path / "b", segment_events=10)

    def stop(done: int, _total: int, _rate: float) -> None:
        if done >= 20:
            raise RuntimeError("the machine is switched off")

    async with broker(tmp_path / "broker") as access:
        with pytest.raises(RuntimeError, match="switched off"):
            await restore(access, tmp_path / "b", stop)
        with pytest.raises(RestoreUnfinished, match="kledger restore-backup again"):
            await ensure_stream(access)

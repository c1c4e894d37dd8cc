"""A restored node has its views when the restore ends: those that its stream makes, or none."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from kledger.contract.errors import BackupDamaged, LogGap, RestoreRefused
from ledger.backup.as_log import BackupLog
from ledger.backup.checking import found_intact
from ledger.backup.keys import keep_keys, restore_keys
from ledger.backup.manifest import load
from ledger.backup.restoring import restore
from ledger.backup.writing import back_up
from ledger.broker.access import BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.server import EmbeddedServer
from ledger.broker.stream_setup import ensure_stream
from ledger.event import StoredEvent
from ledger.integrity.notary_start import NotaryFiles
from ledger.privacy.keyring import Keyring
from ledger.privacy.master_key import kept_master_key, new_master_key
from ledger.privacy.vault_jetstream import JetStreamVault, ensure_keys_bucket
from ledger.store.jetstream import JetStreamLedger
from projections.engine.digest import digests, state_digest
from projections.engine.duckdb import checkpoint_of, open_view
from projections.live.files import live_file
from projections.live.from_backup import NotFolded, ViewsOfBackup, views_of_backup
from projections.live.rebuild import rebuild_into
from tests.backup.kept import WAITS_TO_BE_KILLED, backed_up, history, killed_after, odd_events
from tests.conftest import remove_streams, saved
from tests.integrity.logs import ListedLedger
from tests.patience import PATIENCE
from tests.sealed_events import sealed_event

ADA, BOB = "user:ada", "user:bob"
SAYS = "only its person may read this"
CHILDREN = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")

SLOWLY = (
    WAITS_TO_BE_KILLED
    + """
import asyncio, json, sys
from pathlib import Path
from ledger.backup.checking import found_intact
from ledger.backup.restoring import restore
from ledger.broker.access import BrokerAccess
from projections.live.from_backup import views_of_backup

given = json.loads(sys.stdin.readline())
directory, data = Path(given["directory"]), Path(given["data"])

async def run():
    access = BrokerAccess(given["url"], given["passwords"])
    async with views_of_backup(directory, data) as views:
        manifest = await found_intact(directory)
        await restore(access, directory, told, manifest=manifest, data=data)

asyncio.run(run())
"""
)


@pytest.fixture
async def target(embedded_server: EmbeddedServer) -> BrokerAccess:
    """A broker without a stream."""
    await remove_streams(embedded_server.access)
    return embedded_server.access


@asynccontextmanager
async def keys_of(access: BrokerAccess, data: Path) -> AsyncIterator[JetStreamVault]:
    """The vault of a broker, under the master key of a data directory."""
    await ensure_keys_bucket(access)
    vault = await JetStreamVault.open(access, kept_master_key(data) or new_master_key(data))
    yield vault
    await vault.close()


async def sealed_backup(directory: Path, data: Path) -> None:
    """The backup of a node on `data` where Ada and Bob have said things, and Bob was forgotten."""
    server = EmbeddedServer(directory.with_name("origin"))
    access = await server.start()
    await ensure_stream(access)
    ledger = await JetStreamLedger.connect(access)
    async with keys_of(access, data) as vault:
        for person in (ADA, BOB):
            keys = [await vault.obtain(person)]
            await ledger.append_many([sealed_event(saved(f"{person}-{n}", content=SAYS), keys) for n in range(40)])
        await vault.destroy(BOB, by="user:local", at="2026-03-05T12:00:00Z", receipt="r-1")
        await back_up(ledger, directory, segment_events=30)
        await keep_keys(vault.connection, directory)
    await ledger.close()
    await server.stop()


async def brought_back(
    access: BrokerAccess, directory: Path, data: Path, meanwhile: Callable[[ViewsOfBackup], object] = lambda _: None
) -> str | None:
    """Restore a backup with its views; why there are none, None where they are in place."""
    async with views_of_backup(directory, data) as views:
        meanwhile(views)
        manifest = await found_intact(directory)
        assert (await restore(access, directory, manifest=manifest, data=data)).position == manifest.position
        try:
            await views.put_in_place(access, manifest, lambda *_: None)
        except NotFolded as reason:
            return str(reason)
    return None


def digest_of(path: Path) -> tuple[int, str]:
    """How far a view file is, and the digest of its views."""
    con = open_view(path)
    found = checkpoint_of(con)[0], state_digest(digests(con))
    con.close()
    return found


async def from_the_stream(access: BrokerAccess, path: Path, keyring: Keyring | None = None) -> tuple[int, str]:
    """What a rebuild from the stream makes, as `digest_of` tells it."""
    ledger = await JetStreamLedger.connect(access)
    rebuilt = await rebuild_into(ledger, path, keyring=keyring)
    await ledger.close()
    return rebuilt.position, rebuilt.digest


def files_in(data: Path) -> list[str]:
    """The view files of a data directory, with what names one of them."""
    return sorted(path.name for path in (data / "views").iterdir()) if (data / "views").exists() else []


async def test_its_views_are_those_of_a_rebuild_from_its_stream(target: BrokerAccess, tmp_path: Path) -> None:
    log = [*history(300), *odd_events(301)]
    await backed_up(log, tmp_path / "b", segment_events=90)
    assert await brought_back(target, tmp_path / "b", tmp_path / "data") is None
    assert files_in(tmp_path / "data") == ["current", "view-000001.duckdb"]
    live = live_file(tmp_path / "data" / "views")
    assert live is not None
    assert digest_of(live) == await from_the_stream(target, tmp_path / "again.duckdb")
    assert digest_of(live)[0] == len(log)


async def test_what_persons_said_is_folded_with_the_keys_of_the_backup(target: BrokerAccess, tmp_path: Path) -> None:
    data = tmp_path / "data"
    await sealed_backup(tmp_path / "b", data)
    assert await brought_back(target, tmp_path / "b", data) is None
    live = live_file(data / "views")
    assert live is not None
    async with keys_of(target, data) as vault:
        keyring = Keyring.over(vault, asyncio.get_running_loop())
        assert digest_of(live) == await from_the_stream(target, tmp_path / "again.duckdb", keyring)
    con = open_view(live)
    told = con.execute("SELECT owner, list_distinct(list(content)) FROM knowledge_versions GROUP BY ALL").fetchall()
    readable = con.execute("SELECT count(*) FROM knowledge_versions WHERE content = ?", [SAYS]).fetchone()
    con.close()
    assert readable == (40,), told


async def test_without_the_master_key_they_are_left_to_the_node(target: BrokerAccess, tmp_path: Path) -> None:
    await sealed_backup(tmp_path / "b", tmp_path / "old")
    why = await brought_back(target, tmp_path / "b", tmp_path / "data")
    assert why is not None
    assert "master key" in why
    assert files_in(tmp_path / "data") == []
    new_master_key(tmp_path / "other")
    await remove_streams(target)
    why = await brought_back(target, tmp_path / "b", tmp_path / "other")
    assert why is not None
    assert "another master key" in why
    assert files_in(tmp_path / "other") == []


async def test_a_fold_that_is_killed_leaves_the_restore_alone(target: BrokerAccess, tmp_path: Path) -> None:
    await backed_up(history(300), tmp_path / "b", segment_events=90)
    killed: list[int] = []

    async def kill() -> None:
        while not killed:
            for pid in map(int, CHILDREN.read_text().split()):
                if b"projections.live.from_backup" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
            await asyncio.sleep(0)

    killing: list[asyncio.Task[None]] = []
    why = await brought_back(
        target, tmp_path / "b", tmp_path / "data", lambda _: killing.append(asyncio.create_task(kill()))
    )
    await asyncio.gather(*killing)
    assert why is not None
    assert "without a result" in why
    assert files_in(tmp_path / "data") == []
    assert (await from_the_stream(target, tmp_path / "again.duckdb"))[0] == 300


async def test_a_killed_restore_leaves_nothing_that_a_node_believes(target: BrokerAccess, tmp_path: Path) -> None:
    log, data = history(400), tmp_path / "data"
    await backed_up(log, tmp_path / "b", segment_events=20)
    given = {
        "url": target.url,
        "passwords": dict(target.passwords),
        "directory": str(tmp_path / "b"),
        "data": str(data),
    }
    await killed_after(7, SLOWLY, given)
    assert live_file(data / "views") is None
    assert not NotaryFiles.of(data).checkpoints.exists()
    assert await brought_back(target, tmp_path / "b", data) is None
    live = live_file(data / "views")
    assert live is not None
    assert digest_of(live) == await from_the_stream(target, tmp_path / "again.duckdb")
    async with asyncio.timeout(PATIENCE):  # the fold of the killed one notices that nobody listens
        while files_in(data) != ["current", live.name]:  # noqa: ASYNC110  # another process changes it
            await asyncio.sleep(0.05)


async def test_a_damaged_backup_leaves_no_directory(tmp_path: Path) -> None:
    await backed_up(history(25), tmp_path / "b")
    last = sorted((tmp_path / "b" / "events").iterdir())[-1]
    last.write_bytes(last.read_bytes()[:-9])
    with pytest.raises(BackupDamaged, match=last.name):
        async with views_of_backup(tmp_path / "b", tmp_path / "data"):
            await found_intact(tmp_path / "b")
    (tmp_path / "b" / "manifest.json").write_text("{}")
    with pytest.raises(BackupDamaged):
        async with views_of_backup(tmp_path / "b", tmp_path / "data"):
            await found_intact(tmp_path / "b")
    assert not (tmp_path / "data").exists()


async def test_a_person_forgotten_meanwhile_is_in_no_view(target: BrokerAccess, tmp_path: Path) -> None:
    data = tmp_path / "data"
    await sealed_backup(tmp_path / "b", data)
    async with keys_of(target, data) as vault:  # the vault that the node will have, where Ada was forgotten since
        connection = await BrokerConnection.open(target, "admin", name="test")
        await restore_keys(target, connection, tmp_path / "b")
        await connection.close()
        await vault.destroy(ADA, by="user:local", at="2026-03-06T12:00:00Z", receipt="r-2")
    why = await brought_back(target, tmp_path / "b", data)
    assert why is not None
    assert "the vault has other keys" in why
    assert files_in(data) == []


async def test_a_backup_that_goes_on_meanwhile_is_not_believed(target: BrokerAccess, tmp_path: Path) -> None:
    await backed_up(history(30), tmp_path / "b")
    async with views_of_backup(tmp_path / "b", tmp_path / "data") as views:
        assert isinstance(views.folding, asyncio.Task)
        await views.folding
        await backed_up(history(40), tmp_path / "b")
        manifest = await found_intact(tmp_path / "b")
        await restore(target, tmp_path / "b", manifest=manifest)
        with pytest.raises(NotFolded, match="written to"):
            await views.put_in_place(target, manifest, lambda *_: None)
    assert not (tmp_path / "data").exists()


async def test_a_restore_that_does_not_end_leaves_neither_chain_nor_archive(
    target: BrokerAccess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await backed_up(history(30), tmp_path / "b")
    await backed_up(odd_events(1), tmp_path / "other")

    async def somebody_writes(access: BrokerAccess, *_: object) -> int:
        writer = await BrokerConnection.open(access, "writer", name="eve")
        await writer.request("ledger.default.knowledge.x.saved.user.eve", b"{}")
        await writer.close()
        return 0

    with monkeypatch.context() as patched:
        patched.setattr("ledger.backup.restoring.restore_sessions", somebody_writes)
        with pytest.raises(RestoreRefused, match="somebody else wrote"):
            await restore(target, tmp_path / "b", data=tmp_path / "data")
    assert not NotaryFiles.of(tmp_path / "data").checkpoints.exists()
    assert not (tmp_path / "data" / "archive").exists()
    await restore(target, tmp_path / "other", data=tmp_path / "data", start_over=True)
    assert NotaryFiles.of(tmp_path / "data").checkpoints.exists()


async def events_of(log: BackupLog, start: int = 1, batch: int = 7) -> list[StoredEvent]:
    lists = [events async for events in log.read(start, batch=batch)]
    assert all(0 < len(events) <= batch for events in lists)
    return [event for events in lists for event in events]


async def test_a_backup_is_read_as_the_log_that_it_is_of(tmp_path: Path) -> None:
    log = [*history(25), *odd_events(26)]
    await back_up(ListedLedger(log), tmp_path / "b", segment_events=10)
    backup = BackupLog(tmp_path / "b", load(tmp_path / "b").segments)
    for start in (1, 10, 11, 15, 31, 32):
        assert await events_of(backup, start) == log[start - 1 :]
    with pytest.raises(LogGap):
        await events_of(backup, 33)
    file = sorted((tmp_path / "b" / "events").iterdir())[1]
    other = sorted((tmp_path / "b" / "events").iterdir())[2]
    file.unlink()
    file.write_bytes(other.read_bytes())
    with pytest.raises(BackupDamaged, match=file.name):
        await events_of(backup)

"""A disk that is full: a clear error, an unhealthy node, nothing lost, and it goes on by itself when there is room."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from kledger import LedgerClient
from kledger.contract.errors import BrokerMisconfigured, BrokerUnavailable, LedgerError, ServiceFailed
from ledger.broker import disk_watch
from ledger.broker.connection import BrokerConnection
from ledger.broker.disk_watch import BrokerDisk
from ledger.broker.server import EmbeddedServer
from ledger.broker.server_config import ServerFiles
from ledger.broker.stream_setup import ensure_stream
from ledger.integrity.signing_keys import SigningKeys
from ledger.privacy.vault_jetstream import JetStreamVault, ensure_keys_bucket
from ledger.sessions.jetstream import JetStreamSessions, ensure_sessions_stream
from ledger.sessions.port import NewRecord
from ledger.sessions.subjects import SessionKey
from ledger.store.jetstream import JetStreamLedger
from tests.conftest import saved
from tests.journeys.running_node import (
    RunningNode,
    assert_found,
    assert_kept_once,
    caught_up,
    items,
    result_of,
    running,
    until,
    up,
)
from tests.patience import PATIENCE, comes_true
from tests.processes import started
from tests.processes.sooner import SIGNED_AND_ARCHIVED, sooner


@contextmanager
def small_disk(at: Path, mebibytes: int) -> Iterator[Path]:
    """A file system of its own, in memory; only root may mount one."""
    at.mkdir(parents=True, exist_ok=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={mebibytes}m", "tmpfs", str(at)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        yield at
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=True)


def fill(disk: Path, but: int) -> Path:
    """Take all the room there is, except `but` bytes; returns the file to remove."""
    ballast = disk / "ballast"
    state = os.statvfs(disk)
    ballast.write_bytes(b"x" * (state.f_bavail * state.f_frsize - but))
    return ballast


async def test_a_broker_without_room_says_so_keeps_what_it_acknowledged_and_goes_on_when_there_is_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_watch, "ROOM_BYTES", 4 * 1024 * 1024)
    with small_disk(tmp_path / "disk", 16) as disk:
        server = EmbeddedServer(disk / "broker")
        await ensure_stream(await server.start())
        ledger = await JetStreamLedger.connect(server.access, append_timeout=PATIENCE)
        hasty = await JetStreamLedger.connect(server.access, append_timeout=1.0)  # a server without room is silent
        acknowledged = {(await ledger.append(saved("before"))).position: "before"}
        ballast = fill(disk, 120_000)
        for number in count():  # some may be late because the machine is busy
            if server.trouble is not None:
                break
            with contextlib.suppress(BrokerUnavailable):
                kept = await hasty.append(saved(f"item-{number}", content="x" * 30_000))
                acknowledged[kept.position] = f"item-{number}"
        assert len(acknowledged) < 20
        with pytest.raises(BrokerUnavailable, match=r"its disk is full\. Nothing is kept until there are 4 MiB free"):
            await ledger.append(saved("meanwhile"))
        ballast.unlink()
        await comes_true(lambda: server.trouble is None and server.restarts > 0)
        after = await ledger.append(saved("after"))
        read = [event async for events in ledger.read() for event in events]
        assert [event.position for event in read] == list(range(1, after.position + 1))
        assert all(f"/{item}" in read[position - 1].body.decode() for position, item in acknowledged.items())
        assert server.restarts == 1
        await hasty.close()
        await ledger.close()
        await server.stop()


LINES = ["a message: no space left on device", "a message: disk quota exceeded", "a message: Critical write error"]


@pytest.mark.parametrize("line", [*LINES, "a msg on stream 'LEDGER > LEDGER': input/output error"])
async def test_whatever_the_log_of_a_broker_calls_a_failed_write_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    monkeypatch.setattr(disk_watch, "_LOOK_EVERY", 0.01)
    monkeypatch.setattr(disk_watch, "ROOM_BYTES", 2**62)
    files = ServerFiles(tmp_path)
    files.store.mkdir(parents=True)
    files.log.write_text("[INF] Server is ready\n")
    disk = BrokerDisk(files, lambda: None)
    watching = asyncio.create_task(disk.watch())
    with files.log.open("a") as log:
        log.write(f"[ERR] JetStream failed to store {line}\n")
    await comes_true(lambda: disk.trouble is not None)
    assert "its disk is full" in str(disk.trouble)
    watching.cancel()


async def test_a_write_that_fails_though_there_is_room_starts_the_broker_again_and_is_not_called_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_watch, "_LOOK_EVERY", 0.01)
    monkeypatch.setattr(disk_watch, "ROOM_BYTES", 0)
    files, again = ServerFiles(tmp_path), list[str | None]()
    files.store.mkdir(parents=True)
    files.log.write_text("")
    disk = BrokerDisk(files, lambda: again.append(disk.trouble))
    watching = asyncio.create_task(disk.watch())
    with files.log.open("a") as log:
        log.write("[ERR] JetStream failed to store a msg on stream 'LEDGER > LEDGER': input/output error\n")
    await comes_true(lambda: again and disk.trouble is None)
    watching.cancel()
    assert len(again) == 1
    assert "a write failed" in str(again[0])
    assert "full" not in str(again[0])


async def test_a_broker_whose_disk_has_not_a_byte_left_says_so_though_its_log_on_it_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_watch, "_LOOK_EVERY", 0.01)
    monkeypatch.setattr(disk_watch, "ROOM_BYTES", 2 * 1024 * 1024)
    with small_disk(tmp_path / "disk", 4) as at:
        files, again = ServerFiles(at / "broker"), list[bool]()
        files.store.mkdir(parents=True)
        disk = BrokerDisk(files, lambda: again.append(True))
        watching = asyncio.create_task(disk.watch())
        ballast = fill(at, 0)
        await comes_true(lambda: disk.trouble is not None)
        assert "its disk is full. Nothing is kept until there are 2 MiB free" in str(disk.trouble)
        assert not again
        ballast.unlink()
        await comes_true(lambda: again and disk.trouble is None)
        watching.cancel()
        assert len(again) == 1
        assert not list(files.store.iterdir())


def frozen(path: Path, *_: object, **__: object) -> BinaryIO:
    """As open(2) answers on a disk that the kernel froze after an error: access(2) and statfs(2) see nothing of it."""
    raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))


@pytest.mark.parametrize("how", ["moved", "read-only", "frozen"])
async def test_a_broker_whose_directory_is_gone_or_read_only_says_so_though_its_log_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    monkeypatch.setattr(disk_watch, "_LOOK_EVERY", 0.01)
    monkeypatch.setattr(disk_watch, "ROOM_BYTES", 0)
    files, again = ServerFiles(tmp_path / "broker"), list[bool]()
    files.store.mkdir(parents=True)
    disk = BrokerDisk(files, lambda: again.append(True))
    watching = asyncio.create_task(disk.watch())
    with monkeypatch.context() as patched:
        if how == "moved":
            files.directory.rename(tmp_path / "elsewhere")
        elif how == "frozen":
            patched.setattr(Path, "open", frozen)
        else:  # as access(2) answers of a disk that was mounted anew after an error
            patched.setattr(os, "access", lambda *_: False)
        await comes_true(lambda: disk.trouble is not None)
        assert "it is gone or read-only. Nothing is kept until it can be written again" in str(disk.trouble)
        assert not again
        if how == "moved":
            (tmp_path / "elsewhere").rename(files.directory)
    await comes_true(lambda: again and disk.trouble is None)
    watching.cancel()
    assert len(again) == 1


def test_a_view_without_room_is_unhealthy_parks_nothing_and_goes_on_when_there_is_some(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with small_disk(data / "views", 24) as disk, running(data) as node, node.client(read_your_writes=False) as ledger:
        ledger.save_many(items(20))
        caught_up(ledger)
        ballast = fill(disk, 40_000)
        big = [{**item, "content": "x" * 5_000} for item in items(60, "big")]
        told = ledger.save_many(big)
        assert told["saved"] == len(big), "the log has room"
        until(lambda: not ledger.status()["healthy"], "the node says that it is not well")
        reasons = ledger.status()["reasons"]
        assert any("No space left" in reason for reason in reasons), reasons
        assert ledger.health()["status"] == "unhealthy"
        assert_found(ledger, [3])  # what is known can still be asked
        ballast.unlink()
        assert caught_up(ledger)["refused"] == 0
        assert_kept_once(ledger, {str(one["id"]): int(one["position"] or 0) for one in told["results"]})
        assert result_of(ledger, "verify")["equal"] is True


def test_a_start_and_a_command_on_files_that_find_no_room_say_so_in_a_sentence(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        before = SigningKeys.open(disk / "data" / "keys").current()
        ballast = fill(disk, 0)
        for command in (up(disk / "data"), ["key", "rotate", "--data", str(disk / "data")]):
            ran = started.kledger(*command)
            assert ran.returncode == 1, (command, ran.stderr)
            assert "there is no room on the disk" in ran.stderr.splitlines()[-1], (command, ran.stderr)
            assert "Traceback" not in ran.stderr
        ballast.unlink()
        assert SigningKeys.open(disk / "data" / "keys").current() == before


@contextmanager
def unwritable(why: str) -> Iterator[BinaryIO]:
    """A file that takes nothing."""
    if why == "its disk is full":
        with Path("/dev/full").open("wb", buffering=0) as file:
            yield file
        return
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb", buffering=0) as file:
        yield file


@pytest.mark.parametrize("why", ["its disk is full", "nobody reads it"])
def test_a_node_whose_log_cannot_be_written_does_all_of_its_work(why: str, tmp_path: Path) -> None:
    with unwritable(why) as errors:
        process = started.start(up(tmp_path / "data"), stderr=errors)
    assert process.stdout is not None
    try:
        ready = process.stdout.readline()
        node = RunningNode(tmp_path / "data", process, ready.split()[3], ready, tmp_path / "none")
        with node.client() as ledger:
            ledger.save_many(items(20))
            caught_up(ledger)
            assert result_of(ledger, "snapshot")["position"] == 20
            for pid in (node.vectors, node.broker):  # what comes of it is told in lines from the loops of the node
                os.kill(pid, signal.SIGKILL)
            saved_after = ledger.save("Go on", "without a log", ["tool"], scopes=["public"])
            caught_up(ledger)
            assert ledger.search("Go on without a log", top_k=1)["results"][0]["id"] == saved_after["id"]
            assert result_of(ledger, "verify")["equal"] is True
        node.stop()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_snapshot_without_room_is_refused_and_the_view_goes_on_answering(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with small_disk(data / "views", 24) as disk, running(data) as node, node.client() as ledger:
        ledger.save_many([{**item, "content": os.urandom(2_000).hex()} for item in items(400)])
        caught_up(ledger)
        ballast = fill(disk, 100_000)
        with pytest.raises(ServiceFailed, match="there is no room on the disk"):
            result_of(ledger, "snapshot")
        assert "snapshot failed" in node.said()
        assert "Traceback" not in node.said()
        assert_found(ledger, [3])
        assert ledger.status()["stream"]["head"] >= 400
        ballast.unlink()
        assert Path(result_of(ledger, "snapshot")["file"]).exists()
        assert ledger.save("after", "The disk has room again.", ["tool"], id="after")["id"] == "after"


def archive_of(ledger: LedgerClient) -> dict[str, Any]:
    """What the status says of the archive."""
    told = ledger.status()["archive"]
    assert told is not None
    return dict(told)


def test_an_archive_without_room_says_so_holds_nothing_up_and_goes_on_when_there_is_some(tmp_path: Path) -> None:
    data, size = tmp_path / "data", 20
    setting = {"KLEDGER_ARCHIVE_EVENTS": str(size), **sooner(SIGNED_AND_ARCHIVED)}
    with small_disk(data / "archive", 4) as disk, running(data, env=setting) as node, node.client() as ledger:
        ballast = fill(disk, 30_000)
        assert ledger.save_many(items(10 * size))["saved"] == 10 * size
        caught_up(ledger)
        until(lambda: "No space left" in str(archive_of(ledger)["trouble"]), "it says what it has no room for")
        assert any("the archive is not written" in warning for warning in ledger.status()["warnings"])
        verified = result_of(ledger, "verify")
        assert (verified["equal"], verified["archive"]["damaged"]) == (True, [])
        assert verified["archive"]["events"] < 10 * size
        ballast.unlink()
        until(lambda: archive_of(ledger)["position"] == 10 * size, "all of it is archived")
        assert not [path for path in disk.rglob("*") if path.name.endswith(".part")]
        verified = result_of(ledger, "verify")
        assert (verified["equal"], verified["archive"]) == (True, {"events": 10 * size, "damaged": []})


async def test_whatever_a_broker_without_room_is_to_keep_or_remove_is_refused_at_once_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words and keys ended with `batch is incomplete: retry` after ten seconds, or as a broker that is set wrongly."""
    server = EmbeddedServer(tmp_path / "broker")
    access = await server.start()
    await ensure_stream(access)
    await ensure_keys_bucket(access)
    await ensure_sessions_stream(access)
    ledger = await JetStreamLedger.connect(access)
    vault, words = await JetStreamVault.open(access, bytes(32)), await JetStreamSessions.open(access)
    key = SessionKey("default", "user:ann", "s")
    said = NewRecord(key.head(), b"{}", 0)
    kept: list[Callable[[], Awaitable[object]]] = [
        lambda: ledger.append(saved("one")),
        lambda: ledger.append_many([saved("two"), saved("three")]),
        lambda: vault.obtain("user:zoe"),
        lambda: words.put([said]),
        lambda: words.put([said, said._replace(subject=f"{said.subject}.more")]),
    ]
    removed: list[Callable[[], Awaitable[object]]] = [
        lambda: words.purge(said.subject),
        lambda: vault.destroy("user:mei", by="user:mei", at="2026-03-05T12:00:00Z", receipt="r"),
    ]
    await vault.obtain("user:mei")
    with monkeypatch.context() as patched:
        patched.setattr(EmbeddedServer, "trouble", "its disk is full")
        for work in (*kept, *removed):
            with pytest.raises(BrokerUnavailable, match=r"^its disk is full$") as met:
                await work()
            assert met.value.details["retryable"] is False
        assert (await ledger.head()).position == 0, "it is read all the same"
        assert await words.last(said.subject) is None
    for work in (*kept[:4], *removed):
        await work()
    for one in (ledger, vault, words):
        await one.close()
    await server.stop()


@pytest.mark.parametrize("error", [BrokerUnavailable("incomplete: retry"), BrokerMisconfigured("refuses the removal")])
async def test_what_fails_before_it_is_known_that_the_disk_is_full_is_told_with_that_reason(
    error: LedgerError, embedded_server: EmbeddedServer
) -> None:
    known = iter([None, "its disk is full"])
    access = replace(embedded_server.access, hindered=lambda: next(known))
    connection = await BrokerConnection.open(access, "node")
    with pytest.raises(BrokerUnavailable, match=r"^its disk is full$"), connection.storing():
        raise error
    await connection.close()

"""A restore into a broker of its own: events are streamed, each is compared, and all are on the disk in the end."""

from __future__ import annotations

import asyncio
import base64
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import structlog.testing

from kledger.contract.errors import PayloadTooLarge, RestoreRefused
from ledger.backup import restoring
from ledger.backup.refill import streaming
from ledger.backup.restoring import Restored, restore
from ledger.broker.connection import BrokerConnection
from ledger.broker.restored import RESTORING
from ledger.broker.server import EmbeddedServer
from ledger.broker.server_config import RESTORE_PAYLOAD_BYTES
from ledger.broker.stream_setup import ensure_stream
from ledger.event import StoredEvent
from ledger.progress import Progress, silent
from ledger.runtime import synced
from ledger.store.jetstream import JetStreamLedger
from tests.backup.kept import all_of, backed_up, history, odd_events
from tests.conftest import saved
from tests.projections.histories import stored


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the broker does not take is noticed at once."""
    monkeypatch.setattr(streaming, "_LOOK_SECONDS", 0.2)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[EmbeddedServer]:
    own = EmbeddedServer(tmp_path / "broker", max_payload=RESTORE_PAYLOAD_BYTES, sync=False)
    await own.start()
    yield own
    await own.stop()


async def brought_back(server: EmbeddedServer, directory: Path, progress: Progress = silent) -> Restored:
    return await restore(server.access, directory, progress, server=server)


async def there(server: EmbeddedServer) -> list[StoredEvent]:
    """What a node reads on the broker."""
    ledger = await JetStreamLedger.connect(server.access)
    events = await all_of(ledger)
    await ledger.close()
    return events


async def in_batches(server: EmbeddedServer) -> int:
    """How many of its events the broker got in a batch."""
    connection = await BrokerConnection.open(server.access, "admin", name="test")
    info = await connection.api("STREAM.INFO.LEDGER")
    count = 0
    for position in range(1, info["state"]["last_seq"] + 1):
        message = (await connection.api("STREAM.MSG.GET.LEDGER", {"seq": position}))["message"]
        count += b"Nats-Batch-Id" in base64.b64decode(message.get("hdrs", ""))
    await connection.close()
    return count


async def tells_retries_for(server: EmbeddedServer) -> float:
    """For how many seconds the broker takes an event with the same message id for a retry."""
    connection = await BrokerConnection.open(server.access, "admin", name="test")
    info = await connection.api("STREAM.INFO.LEDGER")
    await connection.close()
    return float(info["config"]["duplicate_window"]) / 1e9


def syncs(server: EmbeddedServer) -> bool:
    return b'"sync_interval": "always"' in server.files.config.read_bytes()


async def test_what_is_streamed_is_the_backup_and_is_synced_before_it_counts_as_restored(
    server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, files = history(2_500), set[Path]()
    await backed_up(log, tmp_path / "b", segment_events=400)
    sync = synced.sync

    def noted(path: Path) -> None:
        files.add(path)
        sync(path)

    monkeypatch.setattr(synced, "sync", noted)
    assert not syncs(server)
    restored = await brought_back(server, tmp_path / "b")
    assert restored.position == len(log)
    assert syncs(server)
    blocks = set(server.files.store.rglob("*.blk"))
    assert blocks
    assert blocks <= files
    assert await there(server) == log
    assert await in_batches(server) == 0


async def test_retries_are_told_as_on_every_ledger_once_it_is_restored(server: EmbeddedServer, tmp_path: Path) -> None:
    """Meanwhile only for a moment: the broker reads all that it tells when it is started again."""
    log, seen = history(2_500), list[asyncio.Task[float]]()
    await backed_up(log, tmp_path / "b", segment_events=400)

    def look(done: int, _total: int, _rate: float) -> None:
        if done and not seen:
            seen.append(asyncio.get_running_loop().create_task(tells_retries_for(server)))

    await brought_back(server, tmp_path / "b", look)
    assert await seen[0] < 1
    assert await tells_retries_for(server) == 120
    await ensure_stream(server.access)


async def test_retries_are_told_as_on_every_ledger_though_another_restore_ended_it(
    server: EmbeddedServer, tmp_path: Path
) -> None:
    log = history(2_500)
    await backed_up(log, tmp_path / "b", segment_events=400)

    class CutShortError(Exception):
        pass

    def cut(done: int, _total: int, _rate: float) -> None:
        if done > 1_000:
            raise CutShortError

    with pytest.raises(CutShortError):
        await brought_back(server, tmp_path / "b", cut)
    assert await tells_retries_for(server) < 1
    await restore(server.access, tmp_path / "b")  # as with an address of a broker
    await ensure_stream(server.access)
    assert await there(server) == log


async def test_a_server_that_syncs_already_is_left_running(tmp_path: Path) -> None:
    server = EmbeddedServer(tmp_path / "broker")
    await server.start()
    before = server.pid
    assert await server.synced() == server.access
    assert server.pid == before
    await server.stop()


@pytest.mark.usefixtures("soon")
async def test_what_it_does_not_take_one_by_one_is_sent_in_the_other_way(
    server: EmbeddedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A message id that the log has twice, which the broker takes for a retry, and events of foreign writers."""
    monkeypatch.setattr(restoring, "_SHORT_WINDOW_NS", 120_000_000_000)  # however slow the machine is
    log = [*history(30), *odd_events(31), *(event._replace(position=36 + event.position) for event in history(30))]
    await backed_up(log, tmp_path / "b", segment_events=20)
    with structlog.testing.capture_logs() as told:
        assert (await brought_back(server, tmp_path / "b")).position == len(log)
    assert any("from here on" in one["event"] for one in told)
    assert await there(server) == log
    assert syncs(server)


@pytest.mark.usefixtures("soon")
async def test_who_writes_meanwhile_is_noticed(server: EmbeddedServer, tmp_path: Path) -> None:
    await backed_up(history(3_000), tmp_path / "b", segment_events=500)
    writer = await BrokerConnection.open(server.access, "writer", name="writer")
    asked: list[asyncio.Task[object]] = []

    def write(done: int, _total: int, _rate: float) -> None:
        if done and not asked:
            request = writer.request("ledger.default.knowledge.x.saved.user.eve", b"{}")
            asked.append(asyncio.get_running_loop().create_task(request))

    with pytest.raises(RestoreRefused, match="--start-over"):
        await brought_back(server, tmp_path / "b", write)
    await asyncio.gather(*asked, return_exceptions=True)
    await writer.close()
    connection = await BrokerConnection.open(server.access, "admin", name="test")
    info = await connection.api("STREAM.INFO.LEDGER")
    await connection.close()
    assert RESTORING in info["config"]["metadata"]


@pytest.mark.usefixtures("soon")
async def test_an_event_that_does_not_fit_is_named(tmp_path: Path) -> None:
    log = stored([saved("small"), saved("large", content="x" * 400_000), saved("small too")])
    await backed_up(log, tmp_path / "b")
    server = EmbeddedServer(tmp_path / "broker", max_payload=300_000, sync=False)
    await server.start()
    with pytest.raises(PayloadTooLarge, match="position 2"):
        await brought_back(server, tmp_path / "b")
    await server.stop()


@pytest.mark.usefixtures("soon")
@pytest.mark.parametrize("killed", [signal.SIGKILL, signal.SIGTERM])
async def test_a_broker_that_ends_meanwhile_loses_nothing_of_what_counts_as_restored(
    killed: signal.Signals, server: EmbeddedServer, tmp_path: Path
) -> None:
    log = history(4_000)
    await backed_up(log, tmp_path / "b", segment_events=500)

    ended: list[int] = []

    def ending(done: int, _total: int, _rate: float) -> None:
        if done > len(log) // 2 and server.pid is not None and not ended:
            ended.append(server.pid)
            os.kill(server.pid, killed)

    assert (await brought_back(server, tmp_path / "b", ending)).position == len(log)
    assert ended
    assert syncs(server)
    assert await there(server) == log

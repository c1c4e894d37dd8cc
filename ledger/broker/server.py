"""Embedded broker: the real nats-server as a supervised child process, for nodes without an external broker.

It is started on a free port, restarted when it dies, and stopped with its parent. A server that a killed parent left
behind is stopped before a new one uses the same directory.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO

import structlog

from kledger.contract.errors import BrokerMisconfigured, BrokerUnavailable, LedgerError
from ledger.broker.access import BrokerAccess, Role
from ledger.broker.connection import BrokerConnection
from ledger.broker.disk_watch import BrokerDisk
from ledger.broker.server_config import (
    HOST,
    MAX_PAYLOAD_BYTES,
    Cluster,
    ServerFiles,
    choose_port,
    find_binary,
    hold_directory,
    is_free,
    keep_passwords,
    prepare_directory,
    write_config,
)
from ledger.broker.short_slices import short_slices_of
from ledger.runtime.private import child_environment
from ledger.runtime.synced import sync_below

log = structlog.get_logger(__name__)

READY_TIMEOUT = 60.0  # a million subjects take the server 1-2 s to read in; disks differ
STOP_TIMEOUT = 15.0
_PORTS = 5  # that are tried where others take them between the choice and the server's start
_FIRST_BACKOFF, _LAST_BACKOFF = 0.1, 5.0
_STEADY_SECONDS = 30.0
_POLL = 0.01
# Linux can end a child with its parent. A small Python program requests this and then execs the server, because a hook
# between fork and exec is not safe with threads. The getppid check is for a parent that has ended already.
_DIE_WITH_PARENT = (
    "import ctypes,os,signal,sys\n"
    "ctypes.CDLL(None).prctl(1,signal.SIGTERM)\n"
    "os.getppid()==int(sys.argv[1]) or sys.exit(1)\n"
    "os.execv(sys.argv[2],sys.argv[2:])"
)


class EmbeddedServer:
    """A nats-server on 127.0.0.1 that this process runs, with its data below `data_dir`."""

    def __init__(
        self,
        data_dir: Path | str,
        port: int = 0,
        *,
        cluster: Cluster | None = None,
        passwords: dict[Role, str] | None = None,
        max_payload: int = MAX_PAYLOAD_BYTES,
        on_restart: Callable[[], None] | None = None,
        sync: bool = True,
    ) -> None:
        """Without `sync` the server syncs what it stores every two minutes alone, until `synced` is called."""
        self._directory = Path(data_dir).absolute()
        self._wanted_port, self._cluster, self._passwords = port, cluster, passwords
        self._max_payload, self._on_restart, self._sync = max_payload, on_restart, sync
        self._files = ServerFiles(self._directory)
        self._access: BrokerAccess | None = None
        self._port = 0
        self._held: IO[bytes] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._disk: BrokerDisk | None = None
        self.restarts = 0
        self.ending: Callable[[], bool] = lambda: False
        """Whether the node is stopping: a server that ended, e.g. by the same signal, is then not restarted."""

    async def start(self) -> BrokerAccess:
        """Start the server and wait until it answers requests.

        Raises BrokerMisconfigured (no program, port taken, directory not writable, refuses to start),
        DataDirectoryInUse (another node runs there), BrokerUnavailable (not ready in time).
        """
        if self._process is not None:
            return self.access
        binary = find_binary()
        self._files = prepare_directory(self._directory)
        self._held = hold_directory(self._files)
        try:
            await stop_left_over(self._files)
            await self._launch_on_a_port(binary)
        except BaseException:
            await self._end_child()
            self._release()
            raise
        self._disk = BrokerDisk(self._files, self._kill_for_restart)
        self._watcher = asyncio.create_task(self._supervise(binary, self._disk), name="embedded-broker-watch")
        return self.access

    @property
    def access(self) -> BrokerAccess:
        """Address and credentials, by role. Raises BrokerUnavailable before `start`."""
        if self._access is None:
            raise BrokerUnavailable("the embedded broker is not started")
        return self._access

    @property
    def gone(self) -> bool:
        """Whether it is down for good: where it ends as the node stops, nobody starts it again."""
        return self.ending() and self.pid is None

    @property
    def trouble(self) -> str | None:
        """Why the server cannot store events now; None while it can."""
        return self._disk.trouble if self._disk is not None else None

    @property
    def cause_of_trouble(self) -> str | None:
        """What the server cannot write, and why, without what a node does about it; None where there is no trouble."""
        return self._disk.cause if self._disk is not None and self._disk.trouble is not None else None

    def _kill_for_restart(self) -> None:
        """Kill the server; the watcher then starts another."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()  # SIGTERM might hang on a full disk; everything acknowledged is on disk

    @property
    def url(self) -> str:
        """`nats://127.0.0.1:PORT`, without credentials."""
        return self.access.url

    @property
    def pid(self) -> int | None:
        """The process id of the server, None while it is down."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else None

    @property
    def files(self) -> ServerFiles:
        return self._files

    async def stop(self) -> None:
        """Stop the server: SIGTERM, then SIGKILL after a timeout. Idempotent."""
        if self._watcher is not None:
            self._watcher.cancel()
            await asyncio.wait([self._watcher])
            self._watcher = None
        await self._end_child()
        self._release()

    async def synced(self) -> BrokerAccess:
        """Have all that was stored on the disk, and from now on each event before it is acknowledged.

        Where the server did not sync by itself, it is started anew, and its access is another one. Raises as `start`
        does.
        """
        if not self._sync:
            await self.stop()
            try:
                await asyncio.to_thread(sync_below, self._files.store)
            except OSError as error:
                raise BrokerUnavailable(
                    f"what was stored in {self._files.store} cannot be written to the disk: {error.strerror or error}"
                ) from error
            self._sync, self._access = True, None
            await self.start()
        return self.access

    async def _end_child(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            try:
                async with asyncio.timeout(STOP_TIMEOUT):
                    await process.wait()
            except TimeoutError:
                log.warning("broker_killed", pid=process.pid, waited_s=STOP_TIMEOUT)
                with contextlib.suppress(ProcessLookupError):  # it ended just now
                    process.kill()
                await process.wait()
        with contextlib.suppress(OSError):  # on a disk that went read-only it stays, and the next start looks at it
            self._files.pid.unlink(missing_ok=True)

    def _release(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None

    async def _launch_on_a_port(self, binary: Path) -> None:
        """Start it on the wanted port, else on a free one: on another where a program takes that one meanwhile."""
        passwords = keep_passwords(self._files, self._passwords)
        for left in reversed(range(_PORTS)):
            self._port = choose_port(self._files, self._wanted_port)
            write_config(self._files, self._port, passwords, self._cluster, self._max_payload, sync=self._sync)
            self._access = BrokerAccess(f"nats://{HOST}:{self._port}", passwords, hindered=lambda: self.trouble)
            try:
                await self._launch(binary)
            except BrokerMisconfigured:
                if self._wanted_port or not left or is_free(self._port):
                    raise
            else:
                return

    async def _launch(self, binary: Path) -> None:
        command = [str(binary), "-c", str(self._files.config), "-P", str(self._files.pid)]
        if sys.platform == "linux":
            command = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid()), *command]
        # The server says nothing where it cannot write its log: this names the file.
        os.close(os.open(self._files.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600))
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env=child_environment(),
            start_new_session=True,  # Ctrl-C reaches only the node, which stops the server last
        )
        self._process = process
        started = time.monotonic()
        ready = asyncio.create_task(self._until_ready())
        died = asyncio.create_task(process.wait())
        try:
            await asyncio.wait([ready, died], return_when=asyncio.FIRST_COMPLETED)
            if not ready.done():
                raise BrokerMisconfigured(
                    f"nats-server ended at once with code {process.returncode}; it says: {self._last_words()}"
                )
            await ready
            short_slices_of(process.pid)
        finally:
            ready.cancel()
            died.cancel()
        log.info("broker_ready", url=self.url, pid=process.pid, seconds=round(time.monotonic() - started, 3))

    async def _until_ready(self) -> None:
        """Wait until JetStream answers us as admin, which also proves that the server is ours."""
        deadline = time.monotonic() + READY_TIMEOUT
        while not await _accepts(HOST, self._port):
            if time.monotonic() > deadline:
                raise BrokerUnavailable(
                    f"nats-server does not listen after {READY_TIMEOUT:.0f} s; it says: {self._last_words()}"
                )
            await asyncio.sleep(_POLL)
        connection = await BrokerConnection.open(self.access, "admin", name="kledger-ready", timeout=READY_TIMEOUT)
        try:
            while True:
                try:
                    await connection.api("INFO", timeout=2)
                    return
                except BrokerUnavailable:
                    if time.monotonic() > deadline:
                        raise
                    await asyncio.sleep(_POLL)
        finally:
            await connection.close()

    async def _supervise(self, binary: Path, disk: BrokerDisk) -> None:
        async with asyncio.TaskGroup() as watching:
            watching.create_task(self._watch(binary))
            watching.create_task(disk.watch())

    async def _watch(self, binary: Path) -> None:
        backoff = _FIRST_BACKOFF
        while self._process is not None:
            began = time.monotonic()
            code = await self._process.wait()
            if self.ending():
                log.info("the broker is gone as the node stops", code=code)
                return
            backoff = _FIRST_BACKOFF if time.monotonic() - began > _STEADY_SECONDS else backoff
            log.error("broker_died", code=code, restart_in_s=backoff, last_words=self._last_words())
            while True:
                await asyncio.sleep(backoff)
                if self.ending():
                    return
                backoff = min(backoff * 2, _LAST_BACKOFF)
                try:
                    await self._launch(binary)
                    break
                except (LedgerError, OSError) as error:
                    log.error("broker_restart_failed", error=str(error), restart_in_s=backoff)
                    await self._end_child_quietly()
            self.restarts += 1
            if self._on_restart is not None:
                self._on_restart()

    async def _end_child_quietly(self) -> None:
        process = self._process
        if process is not None and process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def _last_words(self) -> str:
        """The last error in the server's log, else its last line."""
        try:
            lines = self._files.log.read_text(errors="replace").splitlines()[-50:]
        except OSError:
            return "nothing"
        errors = [line for line in lines if "[FTL]" in line or "[ERR]" in line] or lines
        return errors[-1][:500] if errors else "nothing"


async def _accepts(host: str, port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(host, port)
    except OSError:
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True


async def stop_left_over(files: ServerFiles) -> None:
    """Stop the server that a killed parent left running on this directory. Call only with the directory locked."""
    try:
        pid = int(files.pid.read_text())
    except (OSError, ValueError):
        return
    if _runs_on(pid, files.config):
        log.warning("broker_left_over", pid=pid, directory=str(files.directory))
        for kind in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, kind)
            for _ in range(int(STOP_TIMEOUT / _POLL)):
                if not _runs_on(pid, files.config):
                    break
                await asyncio.sleep(_POLL)
    files.pid.unlink(missing_ok=True)


def _runs_on(pid: int, config: Path) -> bool:
    """True when the process is a nats-server with this configuration file: the pid may have been reused."""
    if Path("/proc/self/cmdline").exists():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return False
        return any(b"nats-server" in word for word in words) and os.fsencode(config) in words
    return _command_line_names(pid, config)


def _command_line_names(pid: int, config: Path) -> bool:
    """True when the process runs with this configuration file, on a system without /proc."""
    import subprocess

    query = ["ps", "-ww", "-o", "command=", "-p", str(pid)]
    try:
        output = subprocess.run(query, capture_output=True, text=True, timeout=10, check=False).stdout
    except (OSError, subprocess.SubprocessError):
        return False
    return "nats-server" in output and str(config) in output

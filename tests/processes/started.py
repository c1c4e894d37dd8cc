"""Starts `kledger` commands for tests: forked from a process that has imported the product, else as processes.

A fork saves the time in which Python imports what a command needs. It differs from a process of its own in nothing that
a test sees, but for what Python reads as it starts: so where the environment says something of that which this
process's own does not, a command is started from nothing. So is each with `cold=True`.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from tests.patience import PATIENCE
from tests.processes import nursery
from tests.processes.fork_server import FAULTS, READY
from tests.processes.request import ask, asked, exit_code, umask_of_this_process

ROOT = Path(__file__).parents[2]
KLEDGER = [sys.executable, "-m", "producers.cli.main"]
ENVIRONMENT = {name: value for name, value in os.environ.items() if not name.startswith(("KLEDGER_", "QDRANT_"))}
FORKS = hasattr(os, "pidfd_open") and os.environ.get("KLEDGER_TESTS_COLD") != "1"
# Libraries start threads as they are imported, which a fork would lose.
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
_READ_AT_START = ("PYTHON", "LANG", "LC_", "LD_", "MALLOC_")


class Started:
    """A forked command, with the part of `subprocess.Popen` that tests use."""

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        streams: Sequence[IO[bytes]],
        stdout: IO[str] | None = None,
    ) -> None:
        self.args, self.stdout = [*KLEDGER, *words], stdout
        self.returncode: int | None = None
        self._lock = threading.Lock()
        descriptors = [stream.fileno() for stream in streams]
        umask = umask_of_this_process()
        self._server, self.pid, self._pidfd = ask(fork_server.at, words, environment, umask, str(ROOT), descriptors)

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended."""
        with self._lock:
            if self.returncode is None:
                if not select.select([self._server], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(self.args, timeout or 0)
                self.returncode = exit_code(self._server)
                self._server.close()
                os.close(self._pidfd)
            return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, where it still runs."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, number)

    def hang_up(self) -> None:
        """What happens where this process ends: the server ends the command."""
        self._server.close()
        os.close(self._pidfd)
        self.returncode = -signal.SIGKILL

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


Process = Started | subprocess.Popen[str]


class ForkServer:
    """This process's fork server, started when it is first asked; it ends with this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at = ""
        self._said = ""

    @property
    def forks(self) -> bool:
        """Whether it can fork safely."""
        with self._lock:
            if not self._at:
                self._start()
        return self._said == READY

    @property
    def at(self) -> str:
        """The path of the socket at which it forks."""
        assert self.forks, self._said
        return self._at

    def _start(self) -> None:
        self._at = str(Path(tempfile.mkdtemp(prefix="kledger-forks-")) / "socket")
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.processes.fork_server", self._at],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=ENVIRONMENT | ONE_THREAD,
        )

        atexit.register(process.communicate)  # closes its standard input, and so ends it
        assert process.stdout is not None
        self._said = process.stdout.readline().decode().strip()


fork_server = ForkServer()


def can_fork(environment: Mapping[str, str]) -> bool:
    """Whether a fork is what a process with this environment would be."""
    faults = {FAULTS: ""} if FAULTS in environment else {}
    return FORKS and _read_at_start(environment) == _read_at_start(ENVIRONMENT | faults) and fork_server.forks


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    named = {name: value for name, value in environment.items() if name.startswith(_READ_AT_START)}
    if FAULTS in environment:
        named.pop("PYTHONPATH", None)  # the server puts them in place
    return named


@contextmanager
def jobs_forked() -> Iterator[None]:
    """Within the block, this process's own jobs are forked as those of a node are (`nursery`), in the place of a start
    from nothing: one that imports all that it needs takes longer than most of them work.
    """
    with pytest.MonkeyPatch.context() as jobs:
        jobs.setattr(asyncio, "create_subprocess_exec", nursery.Asking(_begin, _forks_jobs))
        yield


@contextmanager
def jobs_from_nothing() -> Iterator[None]:
    """Within the block they are started from nothing again."""
    with pytest.MonkeyPatch.context() as jobs:
        jobs.setattr(asyncio, "create_subprocess_exec", nursery.REAL)
        yield


def _forks_jobs() -> bool:
    return FAULTS not in os.environ and can_fork(os.environ)


def _begin(request: dict[str, Any], streams: list[int]) -> nursery.Begun:
    server, pid, pidfd = asked(fork_server.at, request, streams)

    def code() -> int:
        with server:
            return exit_code(server)

    return nursery.Begun(pid, pidfd, server.fileno(), code)


def start(
    words: Sequence[str],
    *,
    stderr: IO[bytes],
    environment: Mapping[str, str] = ENVIRONMENT,
    cold: bool = False,
) -> Process:
    """Start `kledger` with these words. Its standard output is a pipe."""
    if cold or not can_fork(environment):
        return subprocess.Popen(
            [*KLEDGER, *words], stdout=subprocess.PIPE, stderr=stderr, text=True, cwd=ROOT, env=environment
        )
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as stdout, Path(os.devnull).open("rb") as stdin:
        printed = os.fdopen(reading, encoding="utf-8")
        try:
            return Started(words, environment, (stdin, stdout, stderr), printed)
        except BaseException:
            printed.close()
            raise


def kledger(
    *words: str,
    said: str = "",
    environment: Mapping[str, str] = ENVIRONMENT,
    within: float = PATIENCE,
    cold: bool = False,
) -> subprocess.CompletedProcess[str]:
    """Run `kledger` with these words, `said` on its standard input, to its end."""
    if cold or not can_fork(environment):
        return subprocess.run(
            [*KLEDGER, *words],
            input=said, capture_output=True, text=True, timeout=within, check=False, cwd=ROOT, env=environment,
        )  # fmt: skip
    with tempfile.TemporaryFile() as stdin, tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        stdin.write(said.encode())
        stdin.seek(0)
        forked = Started(words, environment, (stdin, stdout, stderr))
        try:
            code = forked.wait(within)
        except BaseException:
            forked.kill()
            forked.wait()
            raise
        stdout.seek(0)
        stderr.seek(0)
        return subprocess.CompletedProcess(forked.args, code, stdout.read().decode(), stderr.read().decode())

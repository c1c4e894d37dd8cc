"""A command that is forked is what a process of its own is: in its streams, its exit code and its end."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.running_node import alive, until
from tests.patience import PATIENCE
from tests.processes.started import ENVIRONMENT, ROOT, Started, can_fork, fork_server, kledger, start

pytestmark = pytest.mark.skipif(not can_fork(ENVIRONMENT), reason="here commands are started from nothing")

LAUNCH = ROOT / "tests" / "processes" / "launch.py"
NOBODY = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("version", "--json"), ""),
        (("sql", "-", "--url", NOBODY), "SELECT 1"),
        (("nonsense",), ""),
        (("save", "--help"), ""),
    ],
    ids=["it answers", "it fails", "it is misused", "it helps"],
)
def test_it_prints_and_exits_as_a_process_of_its_own(words: tuple[str, ...], said: str) -> None:
    forked, cold = (kledger(*words, said=said, cold=cold) for cold in (False, True))
    assert (forked.returncode, forked.stdout, forked.stderr) == (cold.returncode, cold.stdout, cold.stderr)
    assert forked.stdout + forked.stderr


def test_a_pipe_may_be_any_of_its_streams(tmp_path: Path) -> None:
    command = [sys.executable, "-I", "-S", str(LAUNCH), fork_server.at, str(ROOT), "sql", "-", "--url", NOBODY]
    ran = subprocess.run(command, input=b"SELECT 1", capture_output=True, cwd=tmp_path, timeout=300, check=False)
    assert (ran.returncode, ran.stdout) == (3, b"")
    assert b"no node answers at" in ran.stderr


@pytest.fixture
def waiting(tmp_path: Path) -> Iterator[Started]:
    """A command that waits for an answer which never comes."""
    with socket.create_server(("127.0.0.1", 0)) as silent, (tmp_path / "log").open("wb") as log:
        process = start(["status", "--url", f"http://127.0.0.1:{silent.getsockname()[1]}"], stderr=log)
        assert isinstance(process, Started)
        assert process.stdout is not None
        with silent.accept()[0], process.stdout:
            yield process
            process.kill()
            process.wait()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_signal_ends_it(waiting: Started, number: int) -> None:
    assert waiting.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(0.01)
    waiting.send_signal(number)
    assert waiting.wait(PATIENCE) == -number
    assert waiting.poll() == -number
    waiting.send_signal(number)  # nobody is there any more: nothing happens


def test_it_ends_with_the_process_that_started_it(waiting: Started) -> None:
    waiting.hang_up()
    until(lambda: not alive(waiting.pid), "the command ends")


def test_it_holds_no_file_but_its_three_streams_and_no_thread_was_lost(waiting: Started) -> None:
    status = dict(line.split(":\t", 1) for line in Path(f"/proc/{waiting.pid}/status").read_text().splitlines())
    assert len(list(Path(f"/proc/{status['PPid'].strip()}/task").iterdir())) == 1
    ours = {
        line.split()[6] for line in Path("/proc/net/unix").read_text().splitlines() if line.endswith(fork_server.at)
    }
    held = [str(file.readlink()) for file in Path(f"/proc/{waiting.pid}/fd").iterdir()]
    assert ours
    assert not {f"socket:[{inode}]" for inode in ours} & {*held}

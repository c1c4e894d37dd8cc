"""A process that a forked node or a test starts is what one from nothing would be: its words, its streams, its end."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest

from projections.vectors.client import spare_process, spawned
from tests.journeys.running_node import RunningNode, alive, items, result_of, until
from tests.patience import comes_true
from tests.processes.fork_server import FAULTS
from tests.processes.nursery import Child
from tests.processes.started import ENVIRONMENT, Started, can_fork

pytestmark = pytest.mark.skipif(not can_fork(ENVIRONMENT), reason="here commands are started from nothing")


def words_of(pid: int) -> list[str]:
    return [os.fsdecode(word) for word in Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")]


def status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: said.strip() for name, _, said in (line.partition(":") for line in lines)}


def test_it_is_a_child_of_the_node_and_shows_the_words_that_it_was_started_with(shared_node: RunningNode) -> None:
    assert isinstance(shared_node.process, Started)
    assert int(status(shared_node.vectors)["PPid"]) == shared_node.process.pid
    assert words_of(shared_node.vectors) == [sys.executable, "-m", "projections.vectors.process"]


def test_it_holds_none_of_the_files_of_the_node(shared_node: RunningNode) -> None:
    def held(pid: int) -> set[str]:
        found = {str(file.readlink()) for file in Path(f"/proc/{pid}/fd").iterdir()}
        return {name for name in found if not name.startswith(("/dev/", "anon_inode:"))}

    shared = held(shared_node.vectors) & held(shared_node.process.pid)
    assert {name.partition(":")[0] for name in shared} <= {"pipe"}
    assert len(shared) <= 3


def test_the_node_learns_of_its_end_and_leaves_no_dead_process(shared_node: RunningNode) -> None:
    with shared_node.client() as ledger:
        ledger.save_many(items(3, "nursery"))
        killed = shared_node.vectors
        os.kill(killed, signal.SIGKILL)
        until(lambda: not Path(f"/proc/{killed}").exists(), "the node waits for it")
        until(lambda: shared_node.children("projections.vectors.process") not in ([], [killed]), "another one runs")
        assert alive(shared_node.vectors)
        verified = result_of(ledger, "verify")
        assert verified["equal"], verified
        assert not shared_node.children("projections.live.rebuild")


async def test_a_job_that_a_test_starts_is_forked_with_its_words_and_ends_as_its_input_does_or_is_killed() -> None:
    left = await spawned()
    assert isinstance(left, Child)
    await comes_true(lambda: words_of(left.pid) == [sys.executable, "-m", "projections.vectors.process"])
    assert left.stdin is not None
    left.stdin.close()
    assert await left.wait() == 0
    assert not alive(left.pid)
    async with spare_process() as killed:
        killed.kill()
        assert await killed.wait() == -signal.SIGKILL
        assert killed.returncode == -signal.SIGKILL
        with pytest.raises(ProcessLookupError):
            killed.terminate()


@pytest.mark.parametrize("variable", ["PYTHONPATH", "LANG", FAULTS])
async def test_a_job_is_started_from_nothing_where_a_test_says_what_python_reads_as_it_starts(
    monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv(variable, "/nowhere")
    async with spare_process() as started:
        assert isinstance(started, asyncio.subprocess.Process)

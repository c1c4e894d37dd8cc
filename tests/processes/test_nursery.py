"""A process that a forked node starts is what one of its own would be: its parent, its words, its end."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.journeys.running_node import RunningNode, alive, items, result_of, until
from tests.processes.started import ENVIRONMENT, Started, can_fork

pytestmark = pytest.mark.skipif(not can_fork(ENVIRONMENT), reason="here commands are started from nothing")


def status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: said.strip() for name, _, said in (line.partition(":") for line in lines)}


def test_it_is_a_child_of_the_node_and_shows_the_words_that_it_was_started_with(shared_node: RunningNode) -> None:
    assert isinstance(shared_node.process, Started)
    assert int(status(shared_node.vectors)["PPid"]) == shared_node.process.pid
    words = Path(f"/proc/{shared_node.vectors}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
    assert [os.fsdecode(word) for word in words] == [sys.executable, "-m", "projections.vectors.process"]


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

"""Short slices of the processor are asked for where Linux has them, and are nobody else's."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ledger.broker import short_slices
from ledger.broker.server import EmbeddedServer
from ledger.broker.short_slices import NANOSECONDS, short_slices_of, short_slices_of_this_thread

_GETATTR = {"x86_64": 315, "aarch64": 275}
_RUNTIME = slice(24, 32)
"""Where the slice stands in `struct sched_attr`."""


def slice_of(task: int = 0) -> int:
    """The slice of a task in nanoseconds; 0 of a kernel that tells none."""
    attributes = ctypes.create_string_buffer(48)
    number = _GETATTR.get(platform.machine())
    assert number is not None
    assert ctypes.CDLL(None).syscall(number, task, attributes, 48, 0) == 0
    return int.from_bytes(attributes.raw[_RUNTIME], sys.byteorder)


def has_slices() -> bool:
    return sys.platform == "linux" and platform.machine() in _GETATTR and slice_of() > 0


where_slices_are = pytest.mark.skipif(not has_slices(), reason="this kernel gives every task the same slice")


def begun_process() -> subprocess.Popen[bytes]:
    """A process that waits for the end of its input."""
    return subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)


def in_new_thread(ask: Callable[[], list[int]]) -> list[int]:
    """What is told by a thread that begins with usual slices, whatever the calling one has."""
    told: list[int] = []
    thread = threading.Thread(target=lambda: told.extend(ask()))
    thread.start()
    thread.join()
    return told


@pytest.fixture
def another() -> Iterator[int]:
    """The process id of somebody else."""
    with begun_process() as process:
        yield process.pid


@where_slices_are
def test_a_thread_that_asks_has_short_slices_and_what_it_begins_has_the_usual_ones() -> None:
    before = slice_of()

    def asks() -> list[int]:
        usual = slice_of()
        short_slices_of_this_thread()
        with begun_process() as child:
            return [slice_of(), usual, slice_of(child.pid), *in_new_thread(lambda: [slice_of()])]

    short, usual, of_process, of_thread = in_new_thread(asks)
    assert short == NANOSECONDS
    assert usual == of_process == of_thread != NANOSECONDS
    assert slice_of() == before


@where_slices_are
def test_every_thread_of_the_embedded_broker_has_short_slices(embedded_server: EmbeddedServer) -> None:
    pid = embedded_server.pid
    assert pid is not None
    assert {slice_of(int(task.name)) for task in Path(f"/proc/{pid}/task").iterdir()} == {NANOSECONDS}


@where_slices_are
def test_who_was_given_another_policy_keeps_it(another: int) -> None:
    os.sched_setscheduler(another, os.SCHED_BATCH, os.sched_param(0))
    short_slices_of(another)
    assert os.sched_getscheduler(another) == os.SCHED_BATCH


@where_slices_are
def test_who_was_made_to_yield_to_others_still_does(another: int) -> None:
    os.setpriority(os.PRIO_PROCESS, another, 7)
    short_slices_of(another)
    assert os.getpriority(os.PRIO_PROCESS, another) == 7
    assert slice_of(another) == NANOSECONDS


@where_slices_are
def test_of_a_processor_whose_call_is_not_known_nothing_is_asked(monkeypatch: pytest.MonkeyPatch, another: int) -> None:
    usual = slice_of(another)
    monkeypatch.setattr(short_slices, "_SYSTEM_CALLS", {})
    short_slices_of(another)
    assert slice_of(another) == usual


@where_slices_are
def test_where_the_kernel_refuses_a_node_starts_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_slices, "_RESET_ON_FORK", 1 << 40)  # a flag that no kernel has

    def asks() -> list[int]:
        usual = slice_of()
        short_slices_of_this_thread()
        return [usual, slice_of()]

    usual, then = in_new_thread(asks)
    assert then == usual != NANOSECONDS


def test_of_a_process_that_has_ended_nothing_is_asked() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    short_slices_of(ended.pid)

"""Short slices of the processor: the broker, and the event loop that waits for it, run as soon as they wake.

Folds and vectors compute beside them for milliseconds at a time. Since Linux 6.12 a task of the usual policy may say
how long its slices are (sched_setattr(2): `sched_runtime` of SCHED_OTHER): who asks for shorter ones comes sooner after
it woke, and gets no more of the processor. Elsewhere this does nothing.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
import sys
from contextlib import suppress
from pathlib import Path

NANOSECONDS = 100_000
"""The shortest that Linux gives; its own are some milliseconds."""
_SYSTEM_CALLS = {"x86_64": 314, "aarch64": 274}
"""The number of sched_setattr, of which older C libraries have no function."""
_RESET_ON_FORK = 1
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")
"""`struct sched_attr` in its first version: size, policy, flags, nice, priority, runtime, deadline, period."""


def short_slices_of_this_thread() -> None:
    """Let the calling thread have short slices; threads and processes that it begins have the usual ones."""
    if sys.platform == "linux":
        with suppress(OSError):
            _set(0, _RESET_ON_FORK)


def short_slices_of(pid: int) -> None:
    """Let every thread of another process have short slices, and those that they begin."""
    if sys.platform == "linux":
        done: set[int] = set()
        with suppress(OSError):  # it ended meanwhile, or the kernel does not let us
            while begun := {int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()} - done:
                for task in begun:
                    _set(task, 0)
                done |= begun


def _set(task: int, flags: int) -> None:
    """Raises OSError where the kernel refuses. A task to which somebody gave another policy keeps it."""
    number = _SYSTEM_CALLS.get(platform.machine())
    if number is None or os.sched_getscheduler(task) != os.SCHED_OTHER:
        return
    nice = os.getpriority(os.PRIO_PROCESS, task)  # stays as it is
    attributes = ctypes.create_string_buffer(
        _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, flags, nice, 0, NANOSECONDS, 0, 0)
    )
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, task, attributes, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

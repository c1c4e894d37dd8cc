"""Memory ceiling: no analyst's statement takes at once what the machine has not got.

DuckDB checks for an interrupt only between two steps, and one step may ask for any amount: `range(n)`, with n from a
column, for 16 GB in one piece. Linux would then end the process. So while statements may run, the process may grow by
half of what is free (`RLIMIT_DATA`), measured anew each second: DuckDB reports what it does not get as out of memory,
and the statement alone fails. All threads of the process have the ceiling, which is why it is that high. Only Linux
tells what is free, and counts what is to be limited; elsewhere nothing is.
"""

from __future__ import annotations

import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

if sys.platform == "linux":
    import resource

_EVERY_SECONDS = 1.0
_LEAST = 256 * 2**20
"""Bytes that it may grow by on a machine that has nothing free: it would run into this while it does nothing."""
_SELF = Path("/proc/self")
_GROUPS = Path("/sys/fs/cgroup")


class _Ceiling:
    """The limit of this process, while it is held."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until = 0.0
        self._held = False

    def held(self) -> bool:
        with self._lock:
            return self._held

    def hold(self, seconds: float) -> None:
        with self._lock:
            self._until = max(self._until, time.monotonic() + seconds)
            if not self._held:
                own = resource.getrlimit(resource.RLIMIT_DATA)
                given: set[int] = set()
                threading.Thread(target=self._go_on, args=(own, given), name="analysts-ceiling", daemon=True).start()
                self._held = True
                with suppress(OSError):  # no file can be opened now: the thread tries again
                    given.add(_lower(own))

    def _go_on(self, own: tuple[int, int], given: set[int]) -> None:
        """Hold it until its time is over; `own` are the limits, soft and hard, that the process had."""
        over = False
        while not over:
            time.sleep(_EVERY_SECONDS)
            with self._lock, suppress(OSError):
                over = self._until <= time.monotonic()
                if over:
                    resource.setrlimit(resource.RLIMIT_DATA, own)
                    self._held = False
                else:
                    given.add(_lower(own))
                _free_children(own, given)


def _lower(own: tuple[int, int]) -> int:
    """Set the limit anew; returns it."""
    most = taken() + max(_LEAST, available() // 2)
    limit = min([most, *(each for each in own if each != resource.RLIM_INFINITY)])
    resource.setrlimit(resource.RLIMIT_DATA, (limit, own[1]))
    return limit


_ceiling = _Ceiling()


def hold_ceiling(seconds: float) -> None:
    """Let the process have a ceiling for so long from now, or as long as an earlier call said; cheap while it has."""
    if sys.platform == "linux" and _SELF.exists():
        _ceiling.hold(seconds)


def is_held() -> bool:
    """Whether the process has a ceiling now."""
    return _ceiling.held()


def available() -> int:
    """Bytes that the machine, and each group of processes that this one is in, can still give."""
    found = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text("ascii"), re.MULTILINE)
    return min([int(found[1]) * 1024 if found else 0, *_left_of_groups()])


def _left_of_groups() -> Iterator[int]:
    """What is left of each limit of memory that this process is under (cgroup v2), without what can be read again."""
    with suppress(OSError):
        named = re.search(r"^0::/(.*)$", (_SELF / "cgroup").read_text(), re.MULTILINE)
        own = _GROUPS / named[1] if named else _GROUPS
        for group in (own, *own.parents):
            with suppress(OSError, ValueError):  # the root has no limit, and `max` is no number
                most = int((group / "memory.max").read_text())
                cached = re.search(r"^inactive_file (\d+)$", (group / "memory.stat").read_text(), re.MULTILINE)
                taken = int((group / "memory.current").read_text()) - (int(cached[1]) if cached else 0)
                yield max(0, most - taken)
            if group == _GROUPS:
                return


def taken() -> int:
    """Bytes of this process that count for the limit."""
    return int((_SELF / "statm").read_text().split()[5]) * resource.getpagesize()


def _free_children(own: tuple[int, int], given: set[int]) -> None:
    """Let processes that were begun under the ceiling have the limits of before it."""
    for task in (_SELF / "task").iterdir():
        with suppress(OSError):  # a thread that ended
            for child in map(int, (task / "children").read_text().split()):
                with suppress(OSError):
                    if resource.prlimit(child, resource.RLIMIT_DATA)[0] in given:
                        resource.prlimit(child, resource.RLIMIT_DATA, own)

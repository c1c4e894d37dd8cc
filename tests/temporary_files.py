"""Where tests keep their files: in memory where there is room for them, else on the disk.

Nearly every test has a broker, views and vectors, which sync all that they write. What is killed is a process, never
the machine: what a process wrote is there afterwards on either.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

MEMORY = Path("/dev/shm")
NEEDED = 8 * 2**30
"""Bytes that have to be free: several times what the suite takes at once."""
OF_THE_SESSION = "session-"
"""How the name of a directory begins that outlives the module whose test asked for it first."""

_BOUNDS = [  # of a container: its limit and what it takes of that, in either version of control groups
    (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")),
    (Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"), Path("/sys/fs/cgroup/memory/memory.usage_in_bytes")),
]


def room() -> str:
    """The directory in which pytest makes its own: what the environment names, memory, or the disk."""
    named = os.environ.get("PYTEST_DEBUG_TEMPROOT", "")
    return named or (str(MEMORY) if _fits_in_memory() else "")


def _fits_in_memory() -> bool:
    try:
        if os.statvfs(MEMORY).f_flag & os.ST_NOEXEC or not os.access(MEMORY, os.W_OK):  # tests write commands, too
            return False
        return min(shutil.disk_usage(MEMORY).free, *_available()) >= NEEDED
    except OSError:
        return False


def _available() -> Iterator[int]:
    """Bytes of memory that can be had, of the machine and of a container's limit."""
    found = re.search(r"^MemAvailable: +(\d+) kB$", Path("/proc/meminfo").read_text("ascii"), re.MULTILINE)
    yield int(found[1]) * 1024 if found else 0
    for limit, taken in _BOUNDS:
        if limit.exists() and (most := limit.read_text("ascii").strip()) != "max":
            yield int(most) - int(taken.read_text("ascii"))


def remove_since(before: set[Path], directory: Path) -> None:
    """Remove what came into a directory of pytest since `before`, but what the session keeps."""
    for path in set(directory.iterdir()) - before:
        if path.name.startswith(OF_THE_SESSION):
            continue
        if path.is_symlink():
            path.unlink()
        else:
            shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="module", autouse=True)
def module_files(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What a module's fixtures wrote goes with the module, unless one of its tests failed."""
    directory, failed = tmp_path_factory.getbasetemp(), request.session.testsfailed
    before = set(directory.iterdir())
    yield
    if request.session.testsfailed == failed:
        remove_since(before, directory)

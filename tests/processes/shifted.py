"""What a process is started with so that its clock is days off: Python's, and that of every library in it.

libfaketime is loaded before libc, so DuckDB's `now()` is shifted too. Monotonic clocks stay: timeouts are as ever.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest


def by(days: int) -> dict[str, str]:
    """The variables of a process whose clock is so many days off, backwards where negative; none for 0.

    It should start no further process: a fork may inherit a lock of libfaketime and never go on.
    """
    if not days:
        return {}
    found = find_spec("libfaketime")
    assert found is not None
    assert found.submodule_search_locations is not None
    (package,) = found.submodule_search_locations
    library = Path(package, "vendor", "libfaketime", "src", "libfaketime.so.1")
    assert library.is_file(), library
    # Without the last one, which is for an old libc, waits with a timeout would last too long.
    return {
        "LD_PRELOAD": str(library),
        "FAKETIME": f"{days:+d}d",
        "DONT_FAKE_MONOTONIC": "1",
        "FAKETIME_FORCE_MONOTONIC_FIX": "0",
    }


@contextmanager
def nothing_left() -> Iterator[None]:
    """Remove what libfaketime leaves in shared memory of processes that a signal ended meanwhile."""
    before = _shared()
    try:
        yield
    finally:
        for file in _shared() - before:
            file.unlink(missing_ok=True)


def _shared() -> set[Path]:
    return set(Path("/dev/shm").glob("*faketime_s*"))


can_shift = pytest.mark.skipif(
    not (sys.platform == "linux" and platform.machine() == "x86_64") or any(each in sys.prefix for each in " :"),
    reason="libfaketime is there compiled for Linux on x86-64 alone; LD_PRELOAD takes no path with a space or colon",
)

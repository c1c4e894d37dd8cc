"""Memory watch: interrupts analysts' statements when they make the node's process grow too much.

DuckDB's `memory_limit` counts tables, sorts and aggregates. It does not count the values that functions make
(`replace`, `||`, lists), and a few characters of SQL make gigabytes of those. So the process is watched while
statements over HTTP run, and they are interrupted when it has grown by more than the limit. DuckDB checks for an
interrupt only between two steps: the memory of one step is not bounded. Only Linux reports a process's memory;
elsewhere nothing is watched.
"""

from __future__ import annotations

import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from pydantic import Field
from pydantic_settings import SettingsConfigDict

from ledger.runtime.settings import EnvironmentSettings, settings_of

MIB = 2**20
_EVERY_SECONDS = 0.03
_STATM = Path("/proc/self/statm")


class AnalystLimits(EnvironmentSettings):
    """Resource limits of analysts' statements."""

    model_config = SettingsConfigDict(env_prefix="KLEDGER_LIMIT_ANALYST_", frozen=True, allow_inf_nan=False)

    memory: int = Field(default=1536 * MIB, ge=64 * MIB)
    """Bytes that the node may grow by while one runs; above the 1 GB that DuckDB counts itself."""
    disk: int = Field(default=8192 * MIB, ge=64 * MIB)
    """Bytes that all of them, over Quack too, may put on the disk; half of what is free there, where that is less."""
    bytes: int = Field(default=64 * MIB, ge=1024)
    """Bytes of one answer over HTTP, as Arrow counts them."""
    seconds: float = Field(default=20.0, gt=0, le=600)
    """For one statement over HTTP, after which its caller has an answer."""


@cache
def analyst_limits() -> AnalystLimits:
    """The limits of this node. Raises InvalidPayload for an invalid setting."""
    return settings_of(AnalystLimits)


@contextmanager
def watched(end: Callable[[], None], growth: int) -> Iterator[None]:
    """Call `end`, possibly several times, when the process grows by more than `growth` bytes while the body runs."""
    if not _STATM.exists():
        yield
        return
    over = threading.Event()
    before = _resident()

    def watch() -> None:
        while not over.wait(_EVERY_SECONDS):
            if _resident() - before > growth:
                end()

    watcher = threading.Thread(target=watch, name="analysts-memory", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()  # so that no later statement is interrupted


def _resident() -> int:
    """Resident set size of the process, in bytes."""
    return int(_STATM.read_text().split()[1]) * resource.getpagesize()

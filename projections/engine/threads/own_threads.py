"""Daemon threads for work that cannot be interrupted, so that the process can exit without waiting for it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable

import structlog

log = structlog.get_logger(__name__)

_left_behind: list[str] = []


class OwnThread(threading.Thread):
    """A daemon thread: the interpreter does not join it."""

    def __init__(self, work: Callable[[], None], name: str) -> None:
        super().__init__(target=work, name=name, daemon=True)


def within(seconds: float, work: Callable[[], None], name: str) -> bool:
    """Run `work` in a thread and wait up to `seconds`; False where it still runs then. Raises what `work` raises."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    thread = OwnThread(run, name)
    thread.start()
    thread.join(seconds)
    if failed:
        raise failed[0]
    return not thread.is_alive()


def left_behind(name: str) -> None:
    """Register a library's thread that can no longer be ended, so that the process exits without waiting for it."""
    _left_behind.append(name)


def still_running() -> list[str]:
    """The names of the threads that have not ended."""
    own = [thread.name for thread in threading.enumerate() if isinstance(thread, OwnThread)]
    return sorted((*own, *_left_behind))


def end_without_them() -> None:
    """Exit with status 0 at once if one of these threads still runs. Call it when everything else is closed.

    A view's file may have changes that were not checkpointed, as after a kill -9: the next start recovers them from the
    file's write-ahead log.
    """
    if names := still_running():
        log.warning("the process ends while statements of analysts run", threads=names)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

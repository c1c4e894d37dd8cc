"""Work that nothing can interrupt has a thread of its own, for which the end of the process does not wait."""

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
    """Do `work` and wait for it for so long; False where it goes on after that. Raises what `work` raises in time."""
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
    """Note a library's thread that can no longer be ended, so that the end of the process does not wait for it."""
    _left_behind.append(name)


def still_running() -> list[str]:
    """The names of the threads that have not come to their end."""
    own = [thread.name for thread in threading.enumerate() if isinstance(thread, OwnThread)]
    return sorted((*own, *_left_behind))


def end_without_them() -> None:
    """End the process at once, with 0, where one of them still runs. Call it when everything else is closed.

    A view's file may hold changes that were not checkpointed, as after a kill -9: the next start takes them from the
    file's own log.
    """
    if names := still_running():
        log.warning("the process ends while statements of analysts run", threads=names)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)

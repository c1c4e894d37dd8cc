"""A node that is told to stop while it starts: it says so at once, starts nothing more, and ends what it began."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")

_IN_A_TERMINAL = () if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN else (signal.SIGHUP,)  # ignored: nohup
SIGNALS = (signal.SIGTERM, signal.SIGINT, *_IN_A_TERMINAL)
"""What stops a node: a service manager, Ctrl-C, and the end of its terminal unless it was started to outlive that."""
_LOOK_SECONDS = 0.02


class StoppedAtStart(Exception):
    """The node was told to stop before it was ready."""


def go_on(ending: Callable[[], bool]) -> None:
    """Raise StoppedAtStart once `ending` is true: between two steps of a start."""
    if ending():
        raise StoppedAtStart


async def unless(ending: Callable[[], bool], step: Coroutine[Any, Any, T]) -> T:
    """What a step comes to that cleans up after itself where it is cancelled, as it is once `ending` is true.

    Raises StoppedAtStart then, and what the step raises.
    """
    task = asyncio.create_task(step)
    try:
        while not task.done():
            await asyncio.wait([task], timeout=_LOOK_SECONDS)
            if ending() and not task.done():
                raise StoppedAtStart
        return task.result()
    finally:
        if not task.done():
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


@contextmanager
def heard_at_once(stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` at a signal also while the body keeps the event loop from it, as the loading of modules does."""
    before = {kind: signal.signal(kind, lambda *_: stop()) for kind in SIGNALS}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)

"""Garbage collector tuning for long-running processes: collect seldom, since batches create many objects and no cycles.

With the default threshold it took a third of the time of a batch of verdicts, and a seventh of that of a rebuild.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

_OBJECTS = 100_000
"""Threshold of the youngest generation; Python 3.11's default is 700."""


def collect_seldom() -> None:
    """Raise the threshold, and exempt all existing objects: modules, classes, routes."""
    gc.freeze()
    gc.set_threshold(_OBJECTS, *gc.get_threshold()[1:])  # older generations as before: long-lived garbage is freed


@contextmanager
def loading() -> Iterator[None]:
    """Collect nothing while the body loads modules, whose objects stay; from its end on, seldom and not among them."""
    gc.disable()
    try:
        yield
    finally:
        collect_seldom()
        gc.enable()


def let_go(error: BaseException) -> None:
    """Free what an error that was answered still holds: the frames that it and its causes went through.

    A frame that keeps the error in a variable, as the web framework's does, holds itself by it, with the body of the
    request. A body is one object, so that thousands of them would come before a collection does.
    """
    several: list[BaseException | None] = [error]
    while several:
        each = several.pop()
        if each is not None and each.__traceback__ is not None:
            each.__traceback__ = None
            several += [each.__cause__, each.__context__]

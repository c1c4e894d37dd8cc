"""The end of a command by Ctrl-C: one line, and the exit code that shells have for it.

Until a command runs, and once it has ended, there is nothing to clean up: then the process ends at once. An exception
would come out of whatever module Python loads at that moment, with a traceback, or be lost in it.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

STOPPED = "kledger: stopped by Ctrl-C"
INTERRUPTED = 130
"""128 and the number of the signal."""


def end_at_once(*_: object) -> None:
    """Say so and end; a handler of the signal, which may interrupt a write of Python's own streams."""
    os.write(2, f"\n{STOPPED}\n".encode())
    os._exit(INTERRUPTED)


def from_the_start() -> None:
    """End at once from now on, unless whoever started the command has it ignore Ctrl-C, as `nohup` and `&` do."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, end_at_once)


@contextmanager
def cleaned_up() -> Iterator[None]:
    """Let Ctrl-C be an exception in the body, which has things to clean up."""
    if signal.getsignal(signal.SIGINT) is not end_at_once:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, end_at_once)

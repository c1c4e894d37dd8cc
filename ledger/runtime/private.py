"""Isolation from other users and from child processes: umask for files, and an environment without the master key.

A node works under umask 077, which its children (the broker, the vector process, jobs) inherit; so does the command.
Every command imports this module, so it imports nothing that loads slowly.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

MASTER_KEY = "KLEDGER_MASTER_KEY"
"""The variable that may hold the master key itself."""
UMASK = 0o077


@contextmanager
def private_files() -> Iterator[None]:
    """Make all files and directories that are created in the block accessible to their owner alone."""
    before = os.umask(UMASK)
    try:
        yield
    finally:
        os.umask(before)


def child_environment(**more: str) -> dict[str, str]:
    """The environment for a child process: ours without the master key, which no child may inherit."""
    return {name: value for name, value in os.environ.items() if name != MASTER_KEY} | more

"""What does the ledger keep from others on the machine? Its files, and from its own children the master key.

A node works under umask 077, which its children inherit: the broker, the vector process, jobs; so does the command.
It is imported by every command, and imports nothing that takes long.
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
    """Files and directories that come into being meanwhile are their owner's alone."""
    before = os.umask(UMASK)
    try:
        yield
    finally:
        os.umask(before)


def child_environment(**more: str) -> dict[str, str]:
    """The environment for a child process: this one, without the master key. What needs it is given it otherwise."""
    return {name: value for name, value in os.environ.items() if name != MASTER_KEY} | more

"""Ports of this machine for servers of tests that are started later, or again: no other program gets one by chance.

Who asks the system for any port gets one of its own range, and keeps it for as long as it likes. These are from below.
"""

from __future__ import annotations

import random
import socket
from collections.abc import Iterator
from contextlib import suppress

LOWEST, HIGHEST = 15_000, 32_000
"""Below those that systems give to whoever asks for any, and above those of known services."""


def free_ports(count: int) -> list[int]:
    """So many different ports at which nothing listens."""
    found: set[int] = set()
    for port in _by_chance():
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            found.add(port)
        if len(found) == count:
            break
    return list(found)


def free_address() -> str:
    """An address of this machine at which nothing listens."""
    (port,) = free_ports(1)
    return f"127.0.0.1:{port}"


def _by_chance() -> Iterator[int]:
    """Ports in an order of this process's own: others choose theirs at the same time."""
    chance = random.SystemRandom()
    while True:
        yield chance.randrange(LOWEST, HIGHEST)

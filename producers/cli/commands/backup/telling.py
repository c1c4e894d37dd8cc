"""What the commands of backups tell alike, while they work and of what they found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from producers.cli.progress import Bar
from producers.cli.screen import plain

if TYPE_CHECKING:  # their imports take a good part of the time of `kledger --help`
    from ledger.progress import Progress


def moving(shown: Bar) -> Progress:
    """A progress callback that moves the bar."""
    return lambda done, total, rate: shown.moved(done, total, rate or None)


def signed_by(signed: dict[str, Any] | None, *, damaged: bool = False) -> str:
    if signed is None and damaged:
        return "not compared: the chain of a damaged backup cannot be"
    if signed is None:
        return "by nobody: the chain is compared with the manifest alone"
    return f"up to position {signed['position']:,} with the key {signed['key']}, {plain(signed['time'])}"

"""Progress of long work, as it tells whoever asked for it."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int, float], None]
"""Called with the number or position that is done, the last one, and the rate per second."""


def silent(_done: int, _total: int, _rate: float) -> None:
    """A progress callback that does nothing."""

"""Size of an indexing slice, between which searches are served: a few milliseconds of work while there are searches."""

from __future__ import annotations

SLICE_SECONDS = 0.004
"""The target time of a slice while there are searches."""
QUIET_SLICE_SECONDS = 0.025
"""The target time while there are none: the most that the first search waits. Small slices cost half as much again."""


def next_slice(size: int, done: int, worked: float, *, searched: bool) -> int:
    """The number of changes for the next slice, from the time of the last one; at most doubles."""
    fitting = int(done * (SLICE_SECONDS if searched else QUIET_SLICE_SECONDS) / max(worked, 1e-6))
    return max(1, min(fitting, size * 2, 256))

"""Size of an indexing slice, between which searches are served: about a few milliseconds of work."""

from __future__ import annotations

SLICE_SECONDS = 0.004
"""The target time of a slice, after which searches are served."""


def next_slice(size: int, done: int, worked: float) -> int:
    """The number of changes for the next slice, from the time of the last one; at most doubles."""
    fitting = int(done * SLICE_SECONDS / max(worked, 1e-6))
    return max(1, min(fitting, size * 2, 256))

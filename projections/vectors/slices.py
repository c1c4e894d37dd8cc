"""Size of an indexing slice, between which searches are served: about a few milliseconds of work."""

from __future__ import annotations

SLICE_SECONDS = 0.004
"""The most that indexing works before it looks for searches."""


def next_slice(size: int, done: int, worked: float) -> int:
    """How many changes fit into the next slice, judging by the last one; never many more at once."""
    fitting = int(done * SLICE_SECONDS / max(worked, 1e-6))
    return max(1, min(fitting, size * 2, 256))

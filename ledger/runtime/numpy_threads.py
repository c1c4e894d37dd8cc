"""One thread for numpy's algebra, of which there is little here: idle threads of OpenBLAS spin, 0.3 s of a start."""

from __future__ import annotations

import os

ONE = {"OPENBLAS_NUM_THREADS": "1"}
"""What a process has in its environment before it loads numpy."""


def compute_on_one_thread() -> None:
    """Let this process and its children have one, unless the environment says how many."""
    for name, value in ONE.items():
        os.environ.setdefault(name, value)

"""Sync to disk by path: of a file what it holds, of a directory the entries that were made and renamed in it."""

from __future__ import annotations

import os
from pathlib import Path


def sync(path: Path) -> None:
    """Return once it is on the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

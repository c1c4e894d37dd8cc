"""Sync to disk by path: of a file what it holds, of a directory the entries that were made and renamed in it.

And lines that are added to a file, all of them or none.
"""

from __future__ import annotations

import os
from pathlib import Path

from ledger.runtime.private import hand_over


def sync(path: Path) -> None:
    """Return once it is on the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_below(directory: Path) -> None:
    """Return once all files in a directory, and in those below it, are on the disk. Raises OSError."""
    for folder, _, files in os.walk(directory):
        for name in files:
            sync(Path(folder) / name)
        sync(Path(folder))


def append_lines(path: Path, lines: bytes) -> None:
    """Add whole lines to a file and sync it. Raises OSError (the disk is full), and then the file is as it was.

    They begin on a line of their own, also where a crash has left a part of one.
    """
    with path.open("a+b", buffering=0) as file:
        before = file.seek(0, os.SEEK_END)
        if not before:
            hand_over(file.fileno(), path)
        else:
            file.seek(before - 1)
            lines = lines if file.read(1) == b"\n" else b"\n" + lines
        try:
            rest = memoryview(lines)
            while rest:
                rest = rest[file.write(rest) :]
            os.fsync(file.fileno())
        except OSError:
            file.truncate(before)
            raise

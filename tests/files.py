"""The files of a directory in which a process may be at work: what disappears during the walk is left out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def entries(directory: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The directory itself and everything below it, with its status (links are not followed), sorted by path."""
    found = [directory]
    for folder, folders, files in os.walk(directory):
        found += [Path(folder, name) for name in (*folders, *files)]
    for path in sorted(found):
        with suppress(FileNotFoundError):
            yield path, path.lstat()


def contents(directory: Path) -> Iterator[tuple[Path, bytes]]:
    """Every regular file at or below a path, with its bytes."""
    for path, _ in entries(directory):
        with suppress(FileNotFoundError):
            if path.is_file():
                yield path, path.read_bytes()

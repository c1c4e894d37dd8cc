"""The files of a directory in which a process may be at work: what disappears during the walk is left out."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

HOLE = 4096
"""Bytes, more than any word that a test looks for."""


def entries(directory: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The directory itself and everything below it, with its status (links are not followed), sorted by path."""
    found = [directory]
    for folder, folders, files in os.walk(directory):
        found += [Path(folder, name) for name in (*folders, *files)]
    for path in sorted(found):
        with suppress(FileNotFoundError):
            yield path, path.lstat()


def contents(directory: Path) -> Iterator[tuple[Path, bytes]]:
    """Every regular file at or below a path, with all that was ever written into it."""
    for path, _ in entries(directory):
        with suppress(FileNotFoundError):
            if path.is_file():
                yield path, written(path)


def written(path: Path) -> bytes:
    """The bytes of a file, but for its holes: of each no more than a page of zeros is left.

    Engines make files of many megabytes in advance and write little of them: to look for forty words in the holes of
    one node took two seconds.
    """
    with path.open("rb") as file:
        return bytes(HOLE).join(_data(file.fileno()))


def _data(file: int) -> Iterator[bytes]:
    """What stands between the holes."""
    end = 0
    while True:
        try:
            start = os.lseek(file, end, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:  # nothing but a hole is left
                raise
            return
        end = os.lseek(file, start, os.SEEK_HOLE)
        yield os.pread(file, end - start, start)

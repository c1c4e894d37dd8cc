"""Generations of the vector directory: a pointer names the current one; a renewed one replaces it as a whole.

    <data>/vectors/                  the first generation, when there is no pointer
    <data>/vectors/generation-0001/  a later one
    <data>/vectors/current           the name of the current one

Erasing points inside a shard leaves their bytes in its segments and its log, so a new shard is built beside it.
"""

from __future__ import annotations

import errno
import re
import shutil
import time
from pathlib import Path

from projections.vectors.store.directories import replace_file

_PAUSE_SECONDS = 0.01
_NAME = re.compile(r"generation-(\d{4,})")


def directory_in_use(root: Path) -> Path:
    """The directory that the pointer names; `root` itself without one. Other generations are removed."""
    directory = _pointed(root)
    discard_others(root, directory)
    return directory


def next_directory(root: Path) -> Path:
    """A directory, not made yet, that was not used before."""
    numbers = [int(match[1]) for path in (root, *root.glob("*")) if (match := _NAME.fullmatch(path.name))]
    return root / f"generation-{max(numbers, default=0) + 1:04d}"


def point_to(root: Path, directory: Path) -> None:
    """Make `directory` the current one, atomically and durably."""
    replace_file(root / "current", directory.name + "\n")


def discard_others(root: Path, keep: Path) -> None:
    """Remove every generation but one: those of aborted renewals, and those that were replaced."""
    if not root.is_dir():
        return
    for path in root.iterdir():
        of_first = keep == root and not is_generation(path)
        if path.is_dir() and path != keep and not of_first:
            _remove(path)


def is_generation(path: Path) -> bool:
    """Whether this is the directory of a later generation."""
    return _NAME.fullmatch(path.name) is not None


def _remove(path: Path) -> None:
    """Remove a directory, also while a process that is exiting still deletes files in it, or writes its last ones."""
    while path.exists():
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
            time.sleep(_PAUSE_SECONDS)


def _pointed(root: Path) -> Path:
    try:
        name = (root / "current").read_text("ascii", "replace").strip()
    except FileNotFoundError:
        return root
    return root / name if _NAME.fullmatch(name) and (root / name).is_dir() else root

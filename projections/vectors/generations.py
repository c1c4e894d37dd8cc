"""Generations of the vector directory: a pointer names the current one; a renewed one replaces it as a whole.

    <data>/vectors/                  the first generation, when there is no pointer
    <data>/vectors/generation-0001/  a later one
    <data>/vectors/current           the name of the current one

Erasing points inside a shard leaves their bytes in its segments and its log, so a new shard is built beside it.
"""

from __future__ import annotations

import contextlib
import errno
import re
import shutil
from pathlib import Path
from time import monotonic, sleep

import structlog

from kledger.contract.errors import ServiceFailed
from projections.vectors.store.directories import replace_file

log = structlog.get_logger(__name__)

_PAUSE_SECONDS = 0.01
_LAST_FILES_SECONDS = 30.0
_NAME = re.compile(r"generation-(\d{4,})")


def directory_in_use(root: Path) -> Path:
    """The directory that the pointer names; `root` itself without one. Other generations are removed.

    One that something writes into is left to the next start.
    """
    directory = _pointed(root)
    with contextlib.suppress(ServiceFailed):  # it is logged
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
    """Remove every generation but one: those of aborted renewals, and those that were replaced.

    Raises ServiceFailed where something goes on writing into one.
    """
    if not root.is_dir():
        return
    left = list[str]()
    for path in root.iterdir():
        of_first = keep == root and not is_generation(path)
        if path.is_dir() and path != keep and not of_first and not _removed(path):
            left.append(path.name)
    if left:
        raise ServiceFailed(
            f"vectors of before cannot be removed ({', '.join(left)} in the directory vectors): something writes into "
            "them, such as a vector process of a node that was killed. End it, and try again"
        )


def is_generation(path: Path) -> bool:
    """Whether this is the directory of a later generation."""
    return _NAME.fullmatch(path.name) is not None


def _removed(path: Path) -> bool:
    """Remove a directory, also while a process that is exiting still deletes files in it, or writes its last ones.

    Whether it is removed: one that is written into for longer is left, with a line in the log.
    """
    deadline = monotonic() + _LAST_FILES_SECONDS
    while path.exists():
        try:
            shutil.rmtree(path)
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno != errno.ENOTEMPTY:
                raise
            if monotonic() > deadline:
                log.warning("vectors of before are not removed: something writes into it", directory=str(path))
                return False
            sleep(_PAUSE_SECONDS)
    return True


def _pointed(root: Path) -> Path:
    try:
        name = (root / "current").read_text("ascii", "replace").strip()
    except FileNotFoundError:
        return root
    return root / name if _NAME.fullmatch(name) and (root / name).is_dir() else root

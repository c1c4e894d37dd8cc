"""Same file: a second name for a file that nobody changes any more, on the same disk; a copy of it elsewhere."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path


def same_file(file: Path, other: Path) -> None:
    """Have `other`, which does not exist, hold what `file` does: a hard link, or a copy that is synced to disk.

    Raises OSError, also where `file` is a link or no file at all.
    """
    if not stat.S_ISREG(file.lstat().st_mode):
        raise OSError(f"{file} is no file")
    try:
        os.link(file, other, follow_symlinks=False)
    except OSError:  # on another file system, or on one without hard links
        _copy(file, other)


def _copy(file: Path, other: Path) -> None:
    with (
        os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW), "rb") as source,
        os.fdopen(os.open(other, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target,
    ):
        shutil.copyfileobj(source, target, 1024 * 1024)
        target.flush()
        os.fsync(target.fileno())

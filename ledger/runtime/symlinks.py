"""Safe resolution of output paths: refuses symbolic links and FIFOs that another user planted in a shared directory.

The rule is that of Linux (fs.protected_symlinks, fs.protected_fifos), enforced also where the system itself does not:
in a sticky world-writable directory such as /tmp, a link or a FIFO is followed only if its owner is the writer or the
owner of the directory.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from kledger.contract.errors import InvalidPayload

_MOST_LINKS = 40
_SHARED = stat.S_ISVTX | stat.S_IWOTH


def followed(path: Path) -> Path:
    """The path with all links resolved. Raises InvalidPayload: another user planted a link or a FIFO."""
    at, left, links = Path("/"), _steps(path.absolute()), 0
    while left:
        name = left.pop()
        if name == "..":
            at = at.parent
            continue
        step = at / name
        try:
            status = step.lstat()
        except OSError:  # it does not exist, or is not accessible: nothing to follow
            return step.joinpath(*reversed(left))
        if stat.S_ISFIFO(status.st_mode) and not _is_trusted(status, at):
            raise _planted(path, step, "a FIFO")
        if not stat.S_ISLNK(status.st_mode) or is_descriptor(step):
            at = step
            continue
        if not _is_trusted(status, at):
            raise _planted(path, step, "a symbolic link")
        links += 1
        if links > _MOST_LINKS:
            return path  # opening it will fail with ELOOP
        target = step.readlink()
        at = Path("/") if target.is_absolute() else at
        left += _steps(target)
    return at


def is_descriptor(path: Path) -> bool:
    """Whether a path without links names an open file of this process, as /dev/stdout and `>(command)` lead to."""
    return path.parent == Path(f"/proc/{os.getpid()}/fd") and path.name.isdecimal()


def _steps(path: Path) -> list[str]:
    """The parts of a path in reverse order."""
    return [name for name in reversed(path.parts) if name != path.anchor]


def _is_trusted(status: os.stat_result, folder: Path) -> bool:
    around = folder.lstat()
    return around.st_mode & _SHARED != _SHARED or status.st_uid in (os.geteuid(), around.st_uid)


def _planted(path: Path, there: Path, what: str) -> InvalidPayload:
    return InvalidPayload(
        f"{path} is not written: {there} is {what} of another account in {there.parent}, where everybody may make one; "
        "name a file in a folder of yours",
        errors=[{"field": "into", "reason": "was planted by another account"}],
    )

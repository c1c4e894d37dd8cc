"""Where does a path lead that somebody is to write to? Not through what another account planted in everybody's folder.

The rule is the one of Linux for links and FIFOs (fs.protected_symlinks, fs.protected_fifos), held wherever the system
itself does not: in a sticky directory that everybody may write in, such as /tmp, a link or a FIFO counts when its owner
is whoever writes, or the owner of the directory.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

from kledger.contract.errors import InvalidPayload

_MOST_LINKS = 40
_EVERYBODYS = stat.S_ISVTX | stat.S_IWOTH


def followed(path: Path) -> Path:
    """The path with every link in it followed. Raises InvalidPayload: another account planted a link or a FIFO."""
    if sys.platform == "win32":
        return path.resolve()
    at, left, links = Path("/"), _steps(path.absolute()), 0
    while left:
        name = left.pop()
        if name == "..":
            at = at.parent
            continue
        step = at / name
        try:
            found = step.lstat()
        except OSError:  # nothing is there, or it may not be seen: nothing to follow
            return step.joinpath(*reversed(left))
        if stat.S_ISFIFO(found.st_mode) and not _ours(found, at):
            raise _planted(path, step, "a FIFO")
        if not stat.S_ISLNK(found.st_mode) or is_descriptor(step):
            at = step
            continue
        if not _ours(found, at):
            raise _planted(path, step, "a symbolic link")
        links += 1
        if links > _MOST_LINKS:
            return path  # whoever opens it is told so
        target = step.readlink()
        at = Path("/") if target.is_absolute() else at
        left += _steps(target)
    return at


def is_descriptor(path: Path) -> bool:
    """Whether a path without links names an open file of this process, as /dev/stdout and `>(command)` lead to."""
    return path.parent == Path(f"/proc/{os.getpid()}/fd") and path.name.isdecimal()


def _steps(path: Path) -> list[str]:
    """Its names, the first one last."""
    return [name for name in reversed(path.parts) if name != path.anchor]


def _ours(found: os.stat_result, folder: Path) -> bool:
    around = folder.lstat()
    return around.st_mode & _EVERYBODYS != _EVERYBODYS or found.st_uid in (os.geteuid(), around.st_uid)


def _planted(path: Path, there: Path, what: str) -> InvalidPayload:
    return InvalidPayload(
        f"{path} is not written: {there} is {what} of another account in {there.parent}, where everybody may make one; "
        "name a file in a folder of yours",
        errors=[{"field": "into", "reason": "was planted by another account"}],
    )

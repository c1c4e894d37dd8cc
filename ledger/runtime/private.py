"""Isolation from other users and from child processes: umask for files, and an environment without the master key.

A node works under umask 077, which its children (the broker, the vector process, jobs) inherit; so does the command.
Every command imports this module, so it imports nothing that loads slowly.
"""

from __future__ import annotations

import contextlib
import os
import site
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MASTER_KEY = "KLEDGER_MASTER_KEY"
"""The variable that may hold the master key itself."""
UMASK = 0o077


@contextmanager
def private_files() -> Iterator[None]:
    """Make all files and directories that are created in the block accessible to their owner alone."""
    before = os.umask(UMASK)
    try:
        yield
    finally:
        os.umask(before)


def hand_over(descriptor: int, path: Path) -> None:
    """Give a new file of root's to the owner of its folder: a node that runs as that user reads it, as all beside it.

    `sudo kledger token create` beside such a node would otherwise make a file that it may not open. What that user has
    put there as a link to another file stays root's.
    """
    if os.geteuid() != 0 or (owner := path.parent.stat()).st_uid == 0:
        return
    opened, there = os.fstat(descriptor), path.lstat()
    if stat.S_ISREG(there.st_mode) and there.st_nlink == 1 and os.path.samestat(opened, there):
        with contextlib.suppress(PermissionError):  # such as a container's root without that right
            os.fchown(descriptor, owner.st_uid, owner.st_gid)


def child_environment(**more: str) -> dict[str, str]:
    """The environment for a child process: ours without the master key, which no child may inherit."""
    return {name: value for name, value in os.environ.items() if name != MASTER_KEY} | more


def module_environment(**more: str) -> dict[str, str]:
    """The environment for a child that runs one of our modules, `python -m`: it imports what this process would.

    Such a child looks into the current directory first, which may be anybody's project, with modules of the names of
    ours, or of the standard library's. The folder of our code is named only where Python does not look by itself: what
    is named comes before the standard library, and among installed packages may be one with a name of it.
    """
    root = str(Path(__file__).parents[2])
    found_anyway = {*site.getsitepackages(), site.getusersitepackages()}
    paths = [*([] if root in found_anyway else [root]), *filter(None, [os.environ.get("PYTHONPATH")])]
    named = {"PYTHONPATH": os.pathsep.join(paths)} if paths else {}
    return child_environment(PYTHONSAFEPATH="1", **named) | more

"""View files of a node: numbered files and a pointer to the live one; no file is ever overwritten.

Beside a file may stand its write-ahead log, and the directory into which it spilled when its program was killed.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
from pathlib import Path

from ledger.runtime.damaged_file import damaged_mark
from projections.engine.duckdb import spilled_of

_NAME = re.compile(r"view-(\d{6})\.duckdb")


def live_file(directory: Path) -> Path | None:
    """The file that the pointer names; None when there is none yet, or the pointer names no view file."""
    try:
        name = (directory / "current").read_bytes().strip().decode("ascii", "replace")
    except FileNotFoundError:
        return None
    return directory / name if _NAME.fullmatch(name) and (directory / name).is_file() else None


def has_served(directory: Path) -> bool:
    """Whether a live file was ever named, or stands there: one that is not found now is missed."""
    return (directory / "current").exists() or any(_NAME.fullmatch(file.name) for file in directory.glob("view-*"))


def next_file(directory: Path) -> Path:
    """A file name that was not used before."""
    directory.mkdir(parents=True, exist_ok=True)
    used = [int(match[1]) for name in directory.iterdir() if (match := _NAME.fullmatch(name.name))]
    return directory / f"view-{max(used, default=0) + 1:06d}.duckdb"


def unnamed_file(directory: Path) -> Path:
    """A new file name that no pointer can name; what stands there is removed when a node starts."""
    return directory / f"view-{secrets.token_hex(8)}.duckdb"


def make_live(path: Path) -> None:
    """Make a whole file that has such a name the live one, and remove all others."""
    live = next_file(path.parent)
    path.rename(live)
    point_to(live)
    discard_others(live.parent, live)


def point_to(path: Path) -> None:
    """Make `path` the live file, atomically and durably: the pointer is synced, then renamed into place."""
    pointer = path.parent / "current"
    fresh = path.parent / "current.new"
    with fresh.open("w") as file:
        file.write(path.name + "\n")
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(pointer)


def copy_closed(path: Path, into: Path) -> None:
    """Copy a view file that nobody writes, with its write-ahead log, which has the last commits."""
    for source, copy in ((path, into), (_log_of(path), _log_of(into))):
        if source.exists():
            shutil.copyfile(source, copy)


def discard(path: Path) -> None:
    """Remove a view file with its write-ahead log and what it spilled."""
    path.unlink(missing_ok=True)
    _log_of(path).unlink(missing_ok=True)
    damaged_mark(path).unlink(missing_ok=True)
    discard_spilled(path)


def discard_spilled(path: Path) -> None:
    """Remove what a killed program spilled of a view file, which nobody has open."""
    if spilled_of(path).is_dir():
        shutil.rmtree(spilled_of(path))


def discard_others(directory: Path, keep: Path) -> None:
    """Remove every view file but one: those of aborted rebuilds, and those that were replaced."""
    for path in directory.glob("view-*.duckdb*"):
        if path.name.startswith(keep.name):
            continue
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _log_of(path: Path) -> Path:
    return path.with_name(path.name + ".wal")

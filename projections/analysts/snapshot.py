"""Snapshot for analysts: a frozen copy of the live view, named by its position."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb

from kledger.contract.errors import ServiceFailed
from projections.engine.view import Instance

_ROOM_BYTES = 4 * 1024 * 1024
"""What a checkpoint takes beyond the log, in blocks of DuckDB's that are not filled."""


def copy_frozen(instance: Instance, directory: Path) -> Path:
    """Copy the live file to `view-<position>.duckdb` and point `latest` to it; folding must be paused meanwhile.

    A snapshot is never overwritten while it is read: the same position is the same file.
    """
    if instance.path is None:
        raise ServiceFailed("this view is in memory and has no file to copy")
    directory.mkdir(parents=True, exist_ok=True)
    file = directory / f"view-{instance.position}.duckdb"
    if not file.exists():
        _check_room(instance.path, directory)
        with contextlib.suppress(duckdb.TransactionException):  # a long query is running: the write-ahead log is copied
            instance.bench.con.execute("CHECKPOINT")
        fresh = file.with_suffix(".part")
        with _none_left(fresh, fresh.with_name(fresh.name + ".wal")):
            _copy_with_log(instance.path, fresh)
            with fresh.open("rb") as copied:
                os.fsync(copied.fileno())
            fresh.replace(file)
    pointer = directory / "latest.new"
    with _none_left(pointer):
        pointer.write_text(file.name + "\n")
        pointer.replace(directory / "latest")
    return file


def _check_room(path: Path, directory: Path) -> None:
    """Raise OSError where a copy of a view file would fill the disk: the checkpoint before it, and the file is lost."""
    log = path.with_name(path.name + ".wal")
    logged = log.stat().st_size if log.exists() else 0
    for place, needed in ((path.parent, logged + _ROOM_BYTES), (directory, path.stat().st_size + 2 * logged)):
        disk = os.statvfs(place)
        if disk.f_bavail * disk.f_frsize < needed:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place))


@contextlib.contextmanager
def _none_left(*halves: Path) -> Iterator[None]:
    """Remove what is half written where the block fails, as on a full disk."""
    try:
        yield
    except BaseException:
        for half in halves:
            half.unlink(missing_ok=True)
        raise


def _copy_with_log(path: Path, into: Path) -> None:
    """Copy a view file with the changes in its write-ahead log, as one file without a log."""
    logs = [file.with_name(file.name + ".wal") for file in (path, into)]
    shutil.copyfile(path, into)
    logs[1].unlink(missing_ok=True)
    if logs[0].exists():
        shutil.copyfile(*logs)
        with duckdb.connect(str(into)) as copied:
            copied.execute("CHECKPOINT")

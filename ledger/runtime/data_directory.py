"""Data directory: created readable by its owner alone; restricted at start if an earlier version was less strict."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import structlog

from kledger.contract.errors import InvalidPayload, NodeMisconfigured
from ledger.runtime.private import UMASK
from ledger.runtime.whole_file import check_directory_place, check_for_duckdb

log = structlog.get_logger(__name__)

# The directories of a node. Nothing else in the data directory is touched: it may be a home directory.
_OURS = ("archive", "broker", "certificates", "chain", "keys", "receipts", "snapshots", "vectors", "views")
# If other users could read it, they may have copied it: then the start is refused (ledger/integrity/signing_keys.py).
_SIGNING_KEY = "signing.pem"
TOKENS = "tokens.json"
"""A node that has this file asks for tokens, also where there is none in it."""
_OUR_FILES = ("node.lock", TOKENS, f"{TOKENS}.lock")
_OF_A_BACKUP = ("manifest.json", "events")  # ledger/backup/place.py


def prepare_data_directory(data: Path) -> None:
    """Create the data directory, or restrict it and the ledger's files in it to its owner.

    Raises NodeMisconfigured when it cannot be created, also where its parent directory is missing.
    """
    try:
        check_data_place(data)
        data.mkdir(exist_ok=True, mode=0o700)
    except InvalidPayload as error:
        raise NodeMisconfigured(f"{error.message}; choose another data directory with --data") from error
    except OSError as error:
        raise NodeMisconfigured(
            f"the data directory {data} cannot be made ({error.strerror or error}): choose another with --data"
        ) from error
    narrowed = 0
    if not data.stat().st_mode & stat.S_ISVTX:  # sticky, such as /tmp: shared by all users
        narrowed += _narrow(data)
    for name in _OURS:
        for folder, _, files in os.walk(data / name):
            narrowed += _narrow(Path(folder))
            narrowed += sum(_narrow(Path(folder, file)) for file in files if file != _SIGNING_KEY)
    narrowed += sum(_narrow(data / name) for name in _OUR_FILES)
    if narrowed:
        log.warning("data_directory_narrowed", data=str(data), entries=narrowed, to="its owner alone")


def check_data_place(data: Path) -> None:
    """Raise InvalidPayload unless a node may have its data there: there is a folder, and no backup is in it.

    A node that was started on a backup would begin an empty log in it, and put its keys among files that are copied.
    """
    check_directory_place(data)
    check_for_duckdb(data)
    if not is_data_directory(data) and all((data / name).exists() for name in _OF_A_BACKUP):
        raise InvalidPayload(
            f"{data} is a backup, and no data directory of a node: kledger backup --check {data} says whether it is "
            f"whole, and kledger restore-backup {data} --data DIR makes a data directory of it",
            errors=[{"field": "data", "reason": "is a backup"}],
        )


def is_data_directory(data: Path) -> bool:
    """Whether it has files of a node: one ran there, or tokens were created for it."""
    return any((data / name).exists() for name in (*_OURS, *_OUR_FILES))


def _narrow(path: Path) -> bool:
    """Remove the permissions of other users from a file or directory of ours; returns whether there were any."""
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode) or not status.st_mode & UMASK or status.st_uid != os.geteuid():
            return False
        path.chmod(stat.S_IMODE(status.st_mode) & ~UMASK)
    except FileNotFoundError:
        return False
    except OSError as error:
        log.warning("data_directory_not_narrowed", path=str(path), why=error.strerror or str(error))
        return False
    return True

"""A data directory is its user's alone: made so, and narrowed at the start where an earlier version left it wider."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import structlog

from kledger.contract.errors import BrokerMisconfigured, InvalidPayload
from ledger.runtime.private import UMASK
from ledger.runtime.whole_file import check_directory_place

log = structlog.get_logger(__name__)

# What a node keeps in its data directory. Nothing else there is touched: it may be somebody's home.
_OURS = ("broker", "certificates", "chain", "keys", "receipts", "snapshots", "vectors", "views")
# One that others could read may be in their hands: the start is refused instead (ledger/integrity/signing_keys.py).
_SIGNING_KEY = "signing.pem"
_OUR_FILES = ("node.lock", "tokens.json", "tokens.json.lock")


def prepare_data_directory(data: Path) -> None:
    """Make the data directory, or narrow it and what the ledger keeps in it to its owner.

    Raises BrokerMisconfigured when it cannot be made, also where the folder is missing that it is to stand in.
    """
    try:
        check_directory_place(data)
        data.mkdir(exist_ok=True, mode=0o700)
    except InvalidPayload as error:
        raise BrokerMisconfigured(f"{error.message}; choose another data directory with --data") from error
    except OSError as error:
        raise BrokerMisconfigured(
            f"the data directory {data} cannot be made ({error.strerror or error}): choose another with --data"
        ) from error
    narrowed = 0
    if not data.stat().st_mode & stat.S_ISVTX:  # such as /tmp: everybody's
        narrowed += _narrow(data)
    for name in _OURS:
        for folder, _, files in os.walk(data / name):
            narrowed += _narrow(Path(folder))
            narrowed += sum(_narrow(Path(folder, file)) for file in files if file != _SIGNING_KEY)
    narrowed += sum(_narrow(data / name) for name in _OUR_FILES)
    if narrowed:
        log.warning("data_directory_narrowed", data=str(data), entries=narrowed, to="its owner alone")


def is_data_directory(data: Path) -> bool:
    """Whether something of a node is in it: one ran there, or tokens were made for one that will."""
    return any((data / name).exists() for name in (*_OURS, *_OUR_FILES))


def _narrow(path: Path) -> bool:
    """Take away what others may do with a file or directory of ours; whether they might do anything."""
    try:
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode) or not found.st_mode & UMASK or found.st_uid != os.geteuid():
            return False
        path.chmod(stat.S_IMODE(found.st_mode) & ~UMASK)
    except FileNotFoundError:
        return False
    except OSError as error:
        log.warning("data_directory_not_narrowed", path=str(path), why=error.strerror or str(error))
        return False
    return True

"""Master key: the key that wraps all data keys, from the environment or from a file of the node.

KLEDGER_MASTER_KEY holds it (32 bytes as base64 or hexadecimal digits); else the file that KLEDGER_MASTER_KEY_FILE
names; else `keys/master.key` in the data directory (0600 in a 0700 directory), which the first start creates. Every
node of one ledger needs the same key.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path

from kledger.contract.errors import WrongMasterKey
from ledger.broker.server_config import write_private
from ledger.privacy.vault import KEY_BYTES, new_secret
from ledger.runtime.private import MASTER_KEY

VARIABLE, FILE_VARIABLE = MASTER_KEY, "KLEDGER_MASTER_KEY_FILE"
NAME = "master.key"


def kept_master_key(data: Path, environment: Mapping[str, str] = os.environ) -> bytes | None:
    """The master key of the node on `data`, 32 bytes; None when there is none anywhere. Raises WrongMasterKey."""
    if text := environment.get(VARIABLE):
        return _read(text, f"the variable {VARIABLE}")
    configured = environment.get(FILE_VARIABLE)
    path = Path(configured) if configured else _file(data)
    try:
        return _read(path.read_text("ascii", "replace"), str(path))
    except FileNotFoundError:
        if configured:
            raise WrongMasterKey(f"{FILE_VARIABLE} names {path}, which is not there: correct it") from None
        return None
    except OSError as error:
        raise WrongMasterKey(f"the master key {path} cannot be read: {error.strerror or error}") from error


def new_master_key(data: Path) -> bytes:
    """Create a master key in the data directory, for a ledger whose vault has none yet."""
    path = _file(data)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    secret = new_secret()
    write_private(path, base64.b64encode(secret) + b"\n")
    return secret


def lost(data: Path) -> WrongMasterKey:
    """The error for a vault with keys but without a master key to unwrap them."""
    return WrongMasterKey(
        f"the keys of this ledger were made under a master key, and there is none: {_file(data)} is not there. No "
        "backup has that file, so a restored node needs a copy from the node that was backed up, and a further node of "
        "a broker one from the first; a file that was lost has to come from where you keep a copy. Or give the key in "
        f"{VARIABLE} or in the file that {FILE_VARIABLE} "
        "names. No new one was made: it would open nothing"
    )


def _file(data: Path) -> Path:
    return data / "keys" / NAME


def _read(text: str, place: str) -> bytes:
    text = text.strip()
    try:
        secret = bytes.fromhex(text) if len(text) == 2 * KEY_BYTES else base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        secret = b""
    if len(secret) != KEY_BYTES:  # the error does not quote it: it may be nearly the right key
        raise WrongMasterKey(f"{place} does not hold {KEY_BYTES} bytes as base64 or hexadecimal digits")
    return secret

"""Which key wraps the data keys? The environment says, or a file that a node's first start makes.

KLEDGER_MASTER_KEY holds it (32 bytes as base64 or hexadecimal digits); else it stands in the file that
KLEDGER_MASTER_KEY_FILE names; else in `keys/master.key` of the data directory (0600 in a 0700 directory). Every
node of one ledger needs the same.
"""

from __future__ import annotations

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path

from ledger.errors import WrongMasterKey
from ledger.server_config import write_private
from ledger.vault import KEY_BYTES, new_secret

VARIABLE, FILE_VARIABLE = "KLEDGER_MASTER_KEY", "KLEDGER_MASTER_KEY_FILE"


def master_key(data: Path, environment: Mapping[str, str] = os.environ) -> bytes:
    """The master key of the node on `data`, 32 bytes; made when there is none anywhere. Raises WrongMasterKey."""
    if stated := environment.get(VARIABLE):
        return _read(stated, f"the variable {VARIABLE}")
    named = environment.get(FILE_VARIABLE)
    path = Path(named) if named else data / "keys" / "master.key"
    try:
        return _read(path.read_text("ascii", "replace"), str(path))
    except FileNotFoundError:
        if named:
            raise WrongMasterKey(f"{FILE_VARIABLE} names {path}, which is not there: correct it") from None
    except OSError as error:
        raise WrongMasterKey(f"the master key {path} cannot be read: {error.strerror or error}") from error
    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    secret = new_secret()
    write_private(path, base64.b64encode(secret) + b"\n")
    return secret


def _read(stated: str, place: str) -> bytes:
    text = stated.strip()
    try:
        secret = bytes.fromhex(text) if len(text) == 2 * KEY_BYTES else base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        secret = b""
    if len(secret) != KEY_BYTES:  # what it holds is not told: it may be nearly right
        raise WrongMasterKey(f"{place} does not hold {KEY_BYTES} bytes as base64 or hexadecimal digits")
    return secret

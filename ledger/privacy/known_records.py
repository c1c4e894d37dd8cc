"""Known records: how many the vault of a node had when they were last counted, kept beside the node's own keys.

The vault never has fewer than before, as a key that is destroyed leaves its tombstone there. So a vault with fewer has
lost some, as of a damaged disk. Nothing else tells that in time: whoever speaks next gets another key, and the words
that the lost one sealed are read from the views, until these are folded anew.
"""

from __future__ import annotations

from pathlib import Path

from ledger.broker.server_config import write_private

_FILE = "vault-records"


def known_records(keys: Path) -> int:
    """How many were counted last, as the file in this directory has it; 0 where it is not there, or says nothing."""
    try:
        text = (keys / _FILE).read_bytes().strip()
    except FileNotFoundError:
        return 0
    return int(text) if text.isdigit() else 0


def keep_known(keys: Path, count: int) -> None:
    """Keep a count that is above the one that is kept. Raises OSError."""
    if count > known_records(keys):
        write_private(keys / _FILE, b"%d\n" % count)


def forget_known(keys: Path) -> None:
    """Count anew at the next start: what was lost was brought back, as far as there is any of it. Raises OSError."""
    (keys / _FILE).unlink(missing_ok=True)

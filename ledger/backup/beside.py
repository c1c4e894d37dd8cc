"""What stands beside the events of a backup: the keys of persons and the words of sessions, as a broker has them now.

The manifest names the two files once they were written, so that a check misses them where they are gone.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from ledger.backup.keys import keep_keys
from ledger.backup.manifest import note_beside
from ledger.backup.place import BESIDE, Where, place_of
from ledger.backup.sessions import keep_sessions
from ledger.broker.connection import BrokerConnection
from ledger.sessions.port import SessionStream


class Kept(NamedTuple):
    """The numbers of records that were kept."""

    words: int
    keys: int


async def keep_beside(connection: BrokerConnection, sessions: SessionStream, where: Where) -> Kept:
    """Copy the words of all sessions, then the vault, into a backup. `connection` has the role `node`.

    The keys come last: whatever is sealed has its key there. Raises BrokerUnavailable, BrokerMisconfigured, OSError,
    ObjectStoreFailed, BackupDamaged, BackupMismatch (somebody else writes).
    """
    place = place_of(where)
    kept = Kept(await keep_sessions(sessions, place), await keep_keys(connection, place))
    await asyncio.to_thread(note_beside, place, *BESIDE)
    return kept

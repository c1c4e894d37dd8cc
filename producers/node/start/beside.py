"""The streams beside the log that a node looks at while it runs: those without which something said would be lost."""

from __future__ import annotations

import time
from collections.abc import Callable

from ledger.broker.connection import BrokerConnection
from ledger.broker.streams_beside import Beside, StreamsBeside
from ledger.privacy import vault_jetstream
from ledger.sessions import jetstream as sessions

_KEYS = Beside(
    vault_jetstream.bucket_settings(),
    vault_jetstream.WHAT,
    "what persons say from now on cannot be read once this node ends. Stop it, bring the keys back with kledger repair "
    "from a backup, and start it",
)
_SESSIONS = Beside(
    sessions.stream_settings(),
    sessions.WHAT,
    "nothing of a session is taken or read. Start the node again, which makes it anew, without what it had",
)


def beside(connection: BrokerConnection, clock: Callable[[], float] = time.monotonic) -> StreamsBeside:
    """The keys of persons and the words of sessions, asked over a connection of the role `node`."""
    return StreamsBeside(connection, (_KEYS, _SESSIONS), clock)

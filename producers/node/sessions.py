"""Sessions of a node: their words opened at its start, and what has to be done about them from time to time."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import structlog

from kledger.contract.errors import LedgerError
from ledger.broker.access import BrokerAccess
from ledger.privacy.holding_back import HoldingBack
from ledger.privacy.keyring import Keyring
from ledger.privacy.vault import Vault
from ledger.sessions.jetstream import JetStreamSessions, ensure_sessions_stream
from ledger.sessions.settings import SessionSettings
from ledger.sessions.steady import SteadyClock
from ledger.sessions.store import SessionStore
from producers.operations.desk import Desk
from producers.operations.sessions.closing import housekeeping

log = structlog.get_logger(__name__)

MOST_BETWEEN_SECONDS = 30.0
"""Between two rounds of housekeeping; less where sessions are idle sooner."""
_SHARE = 10


async def open_sessions(
    access: BrokerAccess,
    vault: Vault,
    keyring: Keyring,
    holding: HoldingBack,
    settings: SessionSettings,
    replicas: int,
    stack: AsyncExitStack,
) -> SessionStore:
    """The sessions of this node, which forget what they hold in memory when a person is forgotten.

    Raises BrokerUnavailable, BrokerMisconfigured.
    """
    await ensure_sessions_stream(access, replicas=replicas)
    store = SessionStore(await JetStreamSessions.open(access), vault, settings, holding)
    stack.push_async_callback(store.close)
    loop = asyncio.get_running_loop()

    def drop() -> None:
        loop.call_soon_threadsafe(store.drop)

    keyring.when_forgotten(drop)
    return store


async def keep_in_time(desk: Desk) -> None:
    """Close idle sessions and remove those whose time is over, until cancelled."""
    assert desk.sessions is not None  # the node has opened them
    settings, clock = desk.sessions.settings, SteadyClock()
    pause = min(MOST_BETWEEN_SECONDS, settings.idle_minutes * 60 / _SHARE)
    while True:
        try:
            closed, removed = await housekeeping(desk, lambda: clock.seconds() >= settings.steady_seconds)
            if closed or removed:
                log.info("sessions ended", closed=closed, removed=removed)
        except LedgerError as error:  # the next round tries again
            log.warning("sessions could not be looked through", code=error.code, error=error.message)
        await asyncio.sleep(pause)

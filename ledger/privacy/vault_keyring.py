"""A keyring over the vault in the broker, for a process of its own that folds or archives the log."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ledger.broker.access import BrokerAccess
from ledger.privacy.keyring import Keyring
from ledger.privacy.vault_jetstream import JetStreamVault


@asynccontextmanager
async def keyring_of(access: BrokerAccess, master: bytes, name: str) -> AsyncIterator[Keyring]:
    """The keys that the `master` key opens; none without one. `name` is the connection's in the broker.

    Raises WrongMasterKey, BrokerUnavailable, BrokerMisconfigured.
    """
    if not master:
        yield Keyring()
        return
    vault = await JetStreamVault.open(access, master, name=name)
    try:
        yield Keyring.over(vault, asyncio.get_running_loop())
    finally:
        await vault.close()

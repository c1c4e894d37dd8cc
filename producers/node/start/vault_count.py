"""Count of the vault's records at the start and at the stop of a node: one that has lost some is told in its health."""

from __future__ import annotations

import contextlib
from contextlib import AsyncExitStack
from pathlib import Path

from kledger.contract.errors import LedgerError
from ledger.integrity.found import missing_from_vault
from ledger.privacy.known_records import keep_known, known_records
from ledger.privacy.vault_jetstream import JetStreamVault
from producers.node.integrity import Integrity


async def count_records(vault: JetStreamVault, integrity: Integrity, stack: AsyncExitStack) -> None:
    """Compare how many records the start found with how many are known; keep how many there are, at the stop too."""
    keys = integrity.notary.files.keys
    lost = known_records(keys) - vault.found
    if lost > 0:
        integrity.note("vault", missing_from_vault("start", lost))
    await _keep(vault, keys)
    stack.push_async_callback(_keep, vault, keys)


async def _keep(vault: JetStreamVault, keys: Path) -> None:
    with contextlib.suppress(LedgerError, OSError):  # then the count before stays
        keep_known(keys, await vault.count())

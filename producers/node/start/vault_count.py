"""Count of the vault's records at the start and at the stop of a node: one that has lost some is told in its health."""

from __future__ import annotations

import contextlib
from contextlib import AsyncExitStack
from pathlib import Path

from kledger.contract.errors import LedgerError
from ledger.integrity.found import missing_from_vault
from ledger.privacy.known_records import Count, Known, found_records, keep_known
from ledger.privacy.vault_jetstream import JetStreamVault
from producers.node.integrity import Integrity


async def count_records(vault: JetStreamVault, found: Count, integrity: Integrity, stack: AsyncExitStack) -> None:
    """Compare how many records the start has `found` with how many are known; keep how many there are, at the stop too.

    A loss stays told, as large as it was: whoever got another key since has not got the lost one back.
    """
    keys = integrity.notary.files.keys
    known = found_records(keys, found)
    if known.lost:
        integrity.note("vault", missing_from_vault(known.lost))
    with contextlib.suppress(OSError):  # then the count before stays
        keep_known(keys, known)
    stack.push_async_callback(_keep, vault, keys, known.lost)


async def _keep(vault: JetStreamVault, keys: Path, lost: int) -> None:
    with contextlib.suppress(LedgerError, OSError):
        keep_known(keys, Known((await vault.count()).by_persons, lost, by_persons=True))

"""Backup in a process of its own, so that it does not block the node's event loop."""

from __future__ import annotations

import contextlib
from dataclasses import asdict
from pathlib import Path

from ledger.archive.archived import Archived
from ledger.backup.keys import keep_keys
from ledger.backup.opening import opened
from ledger.backup.place import Place
from ledger.backup.witnesses import SignedLog
from ledger.backup.writing import BackedUp, back_up
from ledger.broker.access import BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.subprocess_job import access_read, access_told, in_own_process, run_child
from ledger.event import JsonObject
from ledger.progress import Progress
from ledger.runtime.data_directory import TOKENS
from ledger.store.jetstream import JetStreamLedger


async def back_up_in_own_process(
    access: BrokerAccess, where: str, data: Path, progress: Progress, columns: bool | None = None
) -> BackedUp:
    """Run back_up to an address in a process of its own, for the node with the data directory `data`.

    The keys of the vault are kept before the events, where there is one. `columns` is as in back_up. Raises what
    back_up raises; cancelling ends the process, and the backup stays intact.
    """
    order = {"broker": access_told(access, "reader", "node"), "into": where, "data": str(data), "columns": columns}
    return BackedUp(**await in_own_process("ledger.backup.process", order, progress))


async def _back_up(order: JsonObject, progress: Progress) -> JsonObject:
    async with contextlib.AsyncExitStack() as stack:
        access = access_read(order["broker"])
        ledger = await JetStreamLedger.connect(access, role="reader", name="kledger-backup")
        stack.push_async_callback(ledger.close)
        vault = await BrokerConnection.open(access, "node", name="kledger-backup-keys")
        stack.push_async_callback(vault.close)

        async def keys(place: Place) -> None:
            await keep_keys(vault, place)

        data = Path(order["data"])
        signed, archived = SignedLog.of_node(data), Archived.of_node(data)
        place = stack.enter_context(opened(order["into"]))
        tokens = (data / TOKENS).exists()
        done = await back_up(
            ledger,
            place,
            progress,
            signed=signed,
            archived=archived,
            keep_keys=keys,
            tokens=tokens,
            columns=order["columns"],
        )
        return asdict(done)


if __name__ == "__main__":
    run_child(_back_up)

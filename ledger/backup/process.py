"""Backup in a process of its own, so that it does not block the node's event loop."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from ledger.archive.archived import Archived
from ledger.backup.opening import opened
from ledger.backup.witnesses import SignedLog
from ledger.backup.writing import BackedUp, back_up
from ledger.broker.access import BrokerAccess
from ledger.broker.subprocess_job import Progress, access_read, access_told, in_own_process, run_child
from ledger.event import JsonObject
from ledger.store.jetstream import JetStreamLedger


async def back_up_in_own_process(access: BrokerAccess, where: str, data: Path, progress: Progress) -> BackedUp:
    """Run back_up to an address in a process of its own, for the node with the data directory `data`.

    Raises what back_up raises; cancelling ends the process, and the backup stays intact.
    """
    order = {"broker": access_told(access, "reader"), "into": where, "data": str(data)}
    return BackedUp(**await in_own_process("ledger.backup.process", order, progress))


async def _back_up(order: JsonObject, progress: Progress) -> JsonObject:
    ledger = await JetStreamLedger.connect(access_read(order["broker"]), role="reader", name="kledger-backup")
    try:
        data = Path(order["data"])
        signed, archived = SignedLog.of_node(data), Archived.of_node(data)
        with opened(order["into"]) as place:
            return asdict(await back_up(ledger, place, progress, signed=signed, archived=archived))
    finally:
        await ledger.close()


if __name__ == "__main__":
    run_child(_back_up)

"""Archive writer in a process of its own with a low priority: it reads the log once more, and nobody waits for it."""

from __future__ import annotations

import contextlib
import os
from dataclasses import asdict
from pathlib import Path

from kledger.contract.errors import ServiceFailed
from ledger.archive.manifest import NotBelieved
from ledger.broker.access import BrokerAccess
from ledger.broker.subprocess_job import access_read, access_told, in_own_process, run_child
from ledger.event import JsonObject
from ledger.privacy.vault_keyring import keyring_of
from ledger.progress import Progress, silent
from ledger.store.jetstream import JetStreamLedger
from projections.archive.writing import Written, write_due

_PRIORITY = 10


async def write_in_own_process(
    access: BrokerAccess, data: Path, signed: int, size: int, *, master: bytes = b""
) -> Written:
    """Run write_due in a process of its own. Raises ServiceFailed, LogGap, BrokerUnavailable, UnsafeKeyFile.

    With the `master` key it reads keys from the vault, so that sealed events have columns too.
    """
    order = {
        "broker": access_told(access, "reader", *(("node",) if master else ())),
        "data": str(data),
        "signed": signed,
        "size": size,
        "master": master.hex(),
    }
    written = await in_own_process("projections.archive.process", order, silent)
    return Written(**written)


async def _write(order: JsonObject, _progress: Progress) -> JsonObject:
    os.nice(_PRIORITY)
    async with contextlib.AsyncExitStack() as stack:
        access = access_read(order["broker"])
        ledger = await JetStreamLedger.connect(access, role="reader", name="kledger-archive")
        stack.push_async_callback(ledger.close)
        master = bytes.fromhex(order["master"])
        keyring = await stack.enter_async_context(keyring_of(access, master, "kledger-archive"))
        try:
            return asdict(await write_due(ledger, Path(order["data"]), order["signed"], order["size"], keyring))
        except NotBelieved as error:
            raise ServiceFailed(f"{error.file}: {error.reason}") from error
        except OSError as error:
            raise ServiceFailed(f"it cannot be written: {error.strerror or error}") from error


if __name__ == "__main__":
    run_child(_write)

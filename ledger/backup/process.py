"""How does a node back itself up without giving a backup its time? In a process of its own.

`python -m ledger.backup.process` reads its order from standard input and tells its progress, a JSON line each, on
standard output.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import orjson

from ledger.access import BrokerAccess
from ledger.backup.witnesses import SignedLog
from ledger.backup.writing import BackedUp, Progress, back_up
from ledger.errors import LedgerError, ServiceFailed
from ledger.event import JsonObject
from ledger.jetstream import JetStreamLedger


async def back_up_in_own_process(access: BrokerAccess, directory: Path, data: Path, progress: Progress) -> BackedUp:
    """back_up, in a process of its own; `data` is the directory of the node, with what it signed.

    Raises what back_up raises; cancelling ends the process, which leaves the backup as whole as it was.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "ledger.backup.process",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None  # both are pipes
    assert process.stdout is not None
    order: JsonObject = {"url": access.url, "user": access.credentials("reader"), "own": access.own_user is not None}
    order |= {"directory": str(directory), "data": str(data)}
    try:
        process.stdin.write(orjson.dumps(order) + b"\n")
        process.stdin.close()
        async for line in process.stdout:
            told: JsonObject = orjson.loads(line)
            if "backed_up" in told:
                return BackedUp(**told["backed_up"])
            if "error" in told:
                error = told["error"]
                raise _error_named(error["code"])(error["message"], **error["details"])
            progress(told["done"], told["total"], told["rate"])
        raise ServiceFailed(f"the backup into {directory} ended without a result; the log of the node says why")
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        await process.wait()


def _error_named(code: str) -> type[LedgerError]:
    return next((kind for kind in _errors(LedgerError) if kind.code == code), ServiceFailed)


def _errors(kind: type[LedgerError]) -> Iterator[type[LedgerError]]:
    for one in kind.__subclasses__():
        yield one
        yield from _errors(one)


def _access(order: JsonObject) -> BrokerAccess:
    user = order["user"]
    if user is None or order["own"]:
        return BrokerAccess(order["url"], own_user=tuple(user) if user else None)
    return BrokerAccess(order["url"], {"reader": user[1]})


async def _main() -> None:
    order: JsonObject = orjson.loads(sys.stdin.readline())

    def tell(told: JsonObject) -> None:
        sys.stdout.write(orjson.dumps(told).decode() + "\n")
        sys.stdout.flush()

    try:
        ledger = await JetStreamLedger.connect(_access(order), role="reader", name="kledger-backup")
        try:
            backed_up = await back_up(
                ledger,
                Path(order["directory"]),
                lambda done, total, rate: tell({"done": done, "total": total, "rate": rate}),
                signed=SignedLog.of_node(Path(order["data"])),
            )
        finally:
            await ledger.close()
    except LedgerError as error:
        tell({"error": {"code": error.code, "message": error.message, "details": error.details}})
    else:
        tell({"backed_up": asdict(backed_up)})


if __name__ == "__main__":
    asyncio.run(_main())

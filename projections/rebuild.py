"""How is a view made anew from the log, up to any position, while the live one goes on being read?

In a process of its own, so that folding takes neither the node's processor time nor its memory:
`python -m projections.rebuild` reads its order from standard input and tells its progress, a JSON line each, on
standard output. It holds one new file and nothing of the live view.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

import duckdb
import orjson
import structlog

from ledger.access import BrokerAccess, Role
from ledger.errors import InvalidPayload, LedgerError, ServiceFailed
from ledger.event import JsonObject
from ledger.jetstream import JetStreamLedger
from ledger.keyring import Keyring
from ledger.parked import NONE_PARKED, Parked, read_told
from ledger.parked import told as told_decisions
from ledger.stream import Ledger
from ledger.vault_jetstream import JetStreamVault
from projections.catching_up import catch_up
from projections.digest import digests, state_digest
from projections.duckdb import open_new_view
from projections.files import discard
from projections.view import Instance, View

MEMORY_LIMIT = "512MB"


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A view made from the log: up to which position, of how many events, how fast, and its digest."""

    position: int
    events: int
    refused: int
    seconds: float
    rate: float
    digest: str
    views: JsonObject
    """`rows` and `digest` of each relation that follows from the log."""


async def rebuild_into(
    ledger: Ledger,
    path: Path,
    to: int | None = None,
    progress: Callable[[int, int, float], None] = lambda _done, _total, _rate: None,
    parked: Parked = NONE_PARKED,
    *,
    keyring: Keyring | None = None,
) -> Rebuilt:
    """Fold the log from its start up to position `to` (None: the head as it is now) into a new file.

    `progress` gets position, last position and events a second. Raises InvalidPayload when the file exists
    or `to` is beyond the head, LogGap, BrokerUnavailable, and UnfoldableEvent for an event that cannot be folded and
    is not `parked`; a file that is not finished is removed.
    """
    head = (await ledger.head()).position
    last = head if to is None else to
    if last > head:
        raise InvalidPayload(f"position {last} is beyond the head of the log, which is {head}", errors=[])
    started = time.monotonic()
    view = View(Instance(_new_view(path), path, keyring))
    try:
        refused = await catch_up(ledger, view, last, lambda at, rate: progress(at, last, rate), parked)
        view.instance.con.execute("CHECKPOINT")
        seconds = time.monotonic() - started
        parts = digests(view.instance.con)
    except BaseException:
        view.close()
        discard(path)
        raise
    view.close()
    views = {name: asdict(part) for name, part in parts.items()}
    return Rebuilt(last, last, refused, seconds, last / max(seconds, 1e-9), state_digest(parts), views)


def _new_view(path: Path) -> duckdb.DuckDBPyConnection:
    if path.exists():
        raise InvalidPayload(f"{path} is there already: choose a file that does not exist", errors=[])
    path.parent.mkdir(parents=True, exist_ok=True)
    return open_new_view(path, memory_limit=MEMORY_LIMIT)


async def position_at(ledger: Ledger, moment: datetime) -> int:
    """The last position that the log kept at or before `moment`; 0 when there is none. Reads the log."""
    wanted, found = int(moment.timestamp() * 1e9), 0
    async with contextlib.aclosing(ledger.read(1, batch=10_000)) as batches:
        async for events in batches:
            for event in events:
                if event.stored_ns > wanted:
                    return found
                found = event.position
    return found


async def in_own_process(
    access: BrokerAccess,
    path: Path,
    to: int | None,
    progress: Callable[[int, int, float], None] = lambda _done, _total, _rate: None,
    parked: Parked = NONE_PARKED,
    *,
    master: bytes = b"",
) -> Rebuilt:
    """rebuild_into, in a process of its own. Raises what it raises; cancelling ends the process.

    With the `master` key it asks the vault for the keys that it needs.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "projections.rebuild",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdin is not None  # both are pipes
    assert process.stdout is not None
    order: JsonObject = {"url": access.url, "user": access.credentials("reader"), "own": access.own_user is not None}
    order |= {"path": str(path), "to": to, "parked": told_decisions(parked.values())}
    order |= {"master": master.hex(), "node": access.credentials("node")}
    try:
        process.stdin.write(orjson.dumps(order) + b"\n")
        process.stdin.close()
        async for line in process.stdout:
            told: JsonObject = orjson.loads(line)
            if "rebuilt" in told:
                return Rebuilt(**told["rebuilt"])
            if "error" in told:
                raise _error_named(told["error"]["code"])(told["error"]["message"])
            progress(told["done"], told["total"], told["rate"])
        raise ServiceFailed(f"the rebuild into {path} ended without a result; its log says why")
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
        await process.wait()


def _error_named(code: str) -> type[LedgerError]:
    return next((kind for kind in LedgerError.__subclasses__() if kind.code == code), ServiceFailed)


def _access(order: JsonObject) -> BrokerAccess:
    user = order["user"]
    if user is None or order["own"]:
        return BrokerAccess(order["url"], own_user=tuple(user) if user else None)
    passwords: dict[Role, str] = {"reader": user[1]}
    if order["master"]:
        passwords["node"] = order["node"][1]
    return BrokerAccess(order["url"], passwords)


async def _main() -> None:
    order: JsonObject = orjson.loads(sys.stdin.readline())
    # Each batch makes many objects and no cycles: looking for garbage as often as usual took a seventh of the time.
    gc.set_threshold(200_000, 20, 100)

    def tell(told: JsonObject) -> None:
        sys.stdout.write(orjson.dumps(told).decode() + "\n")
        sys.stdout.flush()

    try:
        access, keyring = _access(order), None
        ledger = await JetStreamLedger.connect(access, role="reader", name="kledger-rebuild")
        vault = None
        try:
            if order["master"]:
                vault = await JetStreamVault.open(access, bytes.fromhex(order["master"]), name="kledger-rebuild")
                keyring = Keyring.over(vault, asyncio.get_running_loop())
            rebuilt = await rebuild_into(
                ledger,
                Path(order["path"]),
                order["to"],
                lambda done, total, rate: tell({"done": done, "total": total, "rate": rate}),
                read_told(order["parked"]),
                keyring=keyring,
            )
        finally:
            if vault is not None:
                await vault.close()
            await ledger.close()
    except LedgerError as error:
        tell({"error": {"code": error.code, "message": error.message}})
    else:
        tell({"rebuilt": asdict(rebuilt)})


if __name__ == "__main__":
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # the other output is for progress
    with contextlib.suppress(ImportError):
        import uvloop

        uvloop.install()
    asyncio.run(_main())

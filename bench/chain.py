"""Chain benchmark: cost of hash chain and signatures, beside appending many events and beside a rebuild.

Appending: the same batches with a notary in the same process and without one, in turns. Under load the notary pauses
most of the time and signs the rest afterwards; how fast it does that is a row of its own. Rebuild: the cost of the
certificate (the root of all leaves, computed again, and a signature) on top of the rebuild.
`KLEDGER_BENCH_EVENTS` sets the number of events in a turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import uvloop

from bench.append import BODY_BYTES, events_of, rate
from ledger.broker.access import BrokerAccess
from ledger.broker.server import EmbeddedServer
from ledger.broker.stream_setup import ensure_stream
from ledger.event import NewEvent, StoredEvent
from ledger.integrity.certificate import make_certificate
from ledger.integrity.chain import Chain, leaf_hashes
from ledger.integrity.notary import Notary
from ledger.integrity.notary_start import NotaryFiles
from ledger.integrity.signing_keys import SigningKeys
from ledger.store.jetstream import JetStreamLedger
from projections.live.files import discard
from projections.live.rebuild import rebuild_in_own_process

EVENTS = 40_000
ROUNDS = 5
REBUILDS = 3
HASHED = 20_000


@asynccontextmanager
async def at_work(notary: Notary) -> AsyncIterator[None]:
    """Run the loop of a notary during the block."""
    task = asyncio.create_task(notary.run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def measure(events: int) -> list[dict[str, Any]]:
    """Append, sign and rebuild. Returns the rows."""
    with tempfile.TemporaryDirectory(prefix="kledger-bench-") as directory:
        server = EmbeddedServer(Path(directory) / "broker")
        access = await server.start()
        try:
            await ensure_stream(access)
            ledger = await JetStreamLedger.connect(access)
            notary = Notary(ledger, NotaryFiles.of(Path(directory)))
            try:
                rows = [*await _appending(ledger, notary, events)]
                rows += [await _rebuilding(access, ledger, notary, Path(directory)), _hashing()]
            finally:
                await notary.close()
                await ledger.close()
            return rows
        finally:
            await server.stop()


async def _appending(ledger: JetStreamLedger, notary: Notary, events: int) -> list[dict[str, Any]]:
    rates: dict[bool, list[float]] = {True: [], False: []}
    signing: list[float] = []
    await ledger.append_many(events_of(BODY_BYTES, events))  # warms up
    for turn in range(ROUNDS):
        for beside in (turn % 2 == 0, turn % 2 == 1):
            batch = events_of(BODY_BYTES, events)

            async def append(batch: list[NewEvent] = batch) -> None:
                await ledger.append_many(batch)

            async with at_work(notary):
                await notary.certify((await ledger.head()).position, timeout=120)
                if beside:
                    rates[True].append(await rate(events, append))
            if beside:
                continue
            rates[False].append(await rate(events, append))
            async with at_work(notary):
                began = time.perf_counter()
                await notary.certify((await ledger.head()).position, timeout=120)
                signing.append(events / (time.perf_counter() - began))
    ours, raw = rates[True], rates[False]
    ratio = statistics.median(mine / bare for mine, bare in zip(ours, raw, strict=True))
    note = f"{BODY_BYTES} B, batches of 1,000, {events:,} events a turn, ratio is the median of {ROUNDS} pairs"
    return [
        _row("append many, with a notary at work", ours, raw, "events/s", ratio, ">= 0.87", f"bare: without; {note}"),
        {
            **_row(
                "chain and sign, nothing else going on", signing, [], "events/s", None, None, "reads the log itself"
            ),
            "raw": None,
        },
    ]


async def _rebuilding(access: BrokerAccess, ledger: JetStreamLedger, notary: Notary, directory: Path) -> dict[str, Any]:
    position, path = (await ledger.head()).position, directory / "rebuilt.duckdb"
    plain, certified = [], []
    for _ in range(REBUILDS):
        began = time.perf_counter()
        rebuilt = await rebuild_in_own_process(access, path, None)
        middle = time.perf_counter()
        async with at_work(notary):
            chain = await notary.chain_at(position)
        result = {"run": "rebuild", "product": "bench", "views_schema": 0, "views": rebuilt.views}
        make_certificate(result, chain, SigningKeys(notary.files.keys), datetime.now(UTC))
        plain.append(middle - began)
        certified.append(time.perf_counter() - began)
        discard(path)
    ratio = statistics.median(mine / bare for mine, bare in zip(certified, plain, strict=True))
    note = f"bare: the rebuild before it; {position:,} events, the chain of all leaves worked out anew"
    return _row("rebuild with its certificate", certified, plain, "s", ratio, "<= 1.15", note)


def _hashing() -> dict[str, Any]:
    """Microseconds per event for leaf, chain and tree, without reading."""
    subject = "ledger.default.knowledge.0123456789abcdef.saved.user.bench"
    events = [StoredEvent(at, at, subject, bytes(BODY_BYTES), "0" * 36) for at in range(HASHED)]
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        Chain.empty().extended(leaf_hashes(events))
        taken.append((time.perf_counter() - began) / HASHED * 1e6)
    return {**_row("leaf, chain and tree of one event", taken, [], "µs", None, None, f"{BODY_BYTES} B"), "raw": None}


def _row(
    row: str, ours: list[float], raw: list[float], unit: str, ratio: float | None, target: str | None, note: str
) -> dict[str, Any]:
    return {
        "row": row,
        "ours": statistics.median(ours),
        "raw": statistics.median(raw) if raw else None,
        "unit": unit,
        "ratio": ratio,
        "target": target,
        "note": note,
    }


def run() -> list[dict[str, Any]]:
    """The rows of this benchmark."""
    return uvloop.run(measure(int(os.environ.get("KLEDGER_BENCH_EVENTS", EVENTS))))


if __name__ == "__main__":
    for line in run():
        print(line)

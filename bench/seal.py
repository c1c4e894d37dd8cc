"""Sealing benchmark: a person's profile events appended and folded, sealed and in clear.

Both use the same ledger and one embedded server, fsync always, in turns; only the sealing differs.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import uvloop

from bench.append import rate
from ledger.broker.access import BrokerAccess
from ledger.broker.server import EmbeddedServer
from ledger.broker.server_config import MAX_PAYLOAD_BYTES
from ledger.broker.stream_setup import ensure_stream
from ledger.event import NewEvent, StoredEvent
from ledger.events.profile import ProfilePatched, profile_id
from ledger.privacy.event_seal import EventSeal
from ledger.privacy.keyring import Keyring
from ledger.privacy.vault import MemoryVault
from ledger.privacy.vault_jetstream import JetStreamVault, ensure_keys_bucket
from ledger.store.jetstream import JetStreamLedger
from ledger.wire.publication import publication
from producers.operations.sealing import SealingLedger
from projections.engine.batch import fold_batch
from projections.engine.duckdb import open_view
from projections.fold_kit.workbench import Workbench

ROUNDS = 5
SINGLES = 400
MANY = 4_000
FOLDED = 1_000
PERSONS = 50
_PATCH = {
    "occupation": "engineer, 工程师",
    "people": [{"name": f"person {n}", "notes": "likes short answers and tea; 喜欢简短的回答。" * 2} for n in range(5)],
    "custom_rules": ["never before nine", "always in writing"],
}


def events_of(count: int) -> list[NewEvent]:
    """`count` patches of about 1 kB, of fifty persons."""
    persons = [f"user:bench-{number % PERSONS}" for number in range(count)]
    return [
        NewEvent(ProfilePatched(owner=person, memory_type="user", patch=_PATCH), profile_id(person, "user"), person)
        for person in persons
    ]


async def _nobody(_org: str, _items: Sequence[str]) -> Mapping[str, Sequence[str]]:
    return {}


async def measure() -> list[dict[str, Any]]:
    """Append both ways, fold both ways. Returns the rows."""
    with tempfile.TemporaryDirectory(prefix="kledger-bench-") as directory:
        server = EmbeddedServer(Path(directory) / "broker")
        access = await server.start()
        try:
            return [*await _appended(access), await _folded()]
        finally:
            await server.stop()


async def _appended(access: BrokerAccess) -> list[dict[str, Any]]:
    await ensure_stream(access)
    await ensure_keys_bucket(access)
    plain = await JetStreamLedger.connect(access)
    vault = await JetStreamVault.open(access, bytes(32))
    sealing = SealingLedger(plain, vault, _nobody)
    rates: dict[str, list[float]] = {name: [] for name in ("one", "one in clear", "many", "many in clear")}

    async def one_at_a_time() -> tuple[float, float]:
        """Rates of the median event; both take turns event by event, so that noise affects them equally."""
        sealed_seconds, clear_seconds = [], []
        for sealed, clear in zip(events_of(SINGLES), events_of(SINGLES), strict=True):
            began = time.perf_counter()
            await sealing.append(sealed)
            between = time.perf_counter()
            await plain.append(clear)
            sealed_seconds.append(between - began)
            clear_seconds.append(time.perf_counter() - between)
        return 1 / statistics.median(sealed_seconds), 1 / statistics.median(clear_seconds)

    async def at_once(ledger: JetStreamLedger | SealingLedger, events: list[NewEvent]) -> None:
        await ledger.append_many(events)

    try:
        for turn in range(ROUNDS + 1):
            one, one_in_clear = await one_at_a_time()
            measured = {
                "one": one,
                "one in clear": one_in_clear,
                "many": await rate(MANY, partial(at_once, sealing, events_of(MANY))),
                "many in clear": await rate(MANY, partial(at_once, plain, events_of(MANY))),
            }
            if turn:  # the first turn warms up, and makes the keys
                for name, value in measured.items():
                    rates[name].append(value)
    finally:
        await vault.close()
        await plain.close()
    return [
        _row("a profile event sealed, one at a time", rates["one"], rates["one in clear"], ">= 0.8"),
        _row("profile events sealed, atomic batches", rates["many"], rates["many in clear"], None),
    ]


async def _folded() -> dict[str, Any]:
    vault = MemoryVault()
    events = events_of(FOLDED)
    clear = _stored(events)
    sealed = _stored([event.sealed_by(EventSeal((await vault.obtain(event.actor),))) for event in events])
    rates: dict[str, list[float]] = {"sealed": [], "clear": []}
    for turn in range(3):
        for name, log in (("sealed", sealed), ("clear", clear)):
            value = _fold_rate(log, vault.held)
            if turn:
                rates[name].append(value)
    return _row("profile events sealed, folded", rates["sealed"], rates["clear"], None)


def _stored(events: Sequence[NewEvent]) -> list[StoredEvent]:
    messages = [publication(event, MAX_PAYLOAD_BYTES) for event in events]
    return [StoredEvent(n, n * 1_000_000, each.subject, each.body) for n, each in enumerate(messages, 1)]


def _fold_rate(log: list[StoredEvent], fetch: Callable[[list[str]], Any]) -> float:
    con = open_view(None)
    bench = Workbench(con, Keyring(fetch))
    began = time.perf_counter()
    fold_batch(bench, log)
    seconds = time.perf_counter() - began
    con.close()
    return len(log) / seconds


def _row(row: str, ours: list[float], raw: list[float], target: str | None) -> dict[str, Any]:
    return {
        "row": row,
        "ours": statistics.median(ours),
        "raw": statistics.median(raw),
        "unit": "events/s",
        "ratio": statistics.median(mine / bare for mine, bare in zip(ours, raw, strict=True)),
        "target": target,
        "note": f"raw: the same in clear; about 1 kB, ratio is the median of {len(ours)} pairs",
    }


def run() -> list[dict[str, Any]]:
    """The rows of this benchmark."""
    return uvloop.run(measure())


if __name__ == "__main__":
    for line in run():
        print(line)

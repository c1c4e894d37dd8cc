"""Backup benchmark: the bytes of a backup beside the log's, what a second one costs, and how fast all is there again.

Two logs, plain and mixed, as in bench/rebuild.py. Each is archived and backed up as a node does it, then grows and is
backed up again. The backup is checked, restored into an empty broker with its archive, and every view is rebuilt there:
all of it in one time, beside a bare client that appends the same events in atomic batches. A ratio is the median of the
rounds. `--events N` (KLEDGER_BENCH_EVENTS), `--million` for 1,000,000, `--rounds N`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvloop

from bench.append import BATCH, bare_batch, bare_client
from bench.corpus import history
from bench.mixed import MixedHistory
from bench.rebuild import MASTER, Measured, append, archive, broker, bytes_in, rebuild
from ledger.backup.checking import intact, read_backup
from ledger.backup.keys import keep_keys
from ledger.backup.process import back_up_in_own_process
from ledger.backup.restoring import restore
from ledger.backup.writing import BackedUp
from ledger.broker.access import BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.server import EmbeddedServer
from ledger.broker.server_config import RESTORE_PAYLOAD_BYTES
from ledger.event import NewEvent
from producers.operations.sealing import PersonsOf

EVENTS = 200_000
MILLION = 1_000_000
ROUNDS = 3
MORE = 20  # the second backup adds one part in so many


@dataclass(slots=True)
class Log:
    """A log in a broker of its own, and what was measured of its backup."""

    name: str
    events: int
    place: Path
    ahead: Iterator[NewEvent]
    mixed: MixedHistory | None = None
    rows: list[dict[str, Any]] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)
    restored: list[float] = field(default_factory=list)
    rebuilt: list[Measured] = field(default_factory=list)

    @property
    def directory(self) -> Path:
        """Of its backup."""
        return self.place / "backup"

    @property
    def sealed(self) -> PersonsOf | None:
        return self.mixed.persons_of if self.mixed else None


async def back_up(access: BrokerAccess, log: Log) -> tuple[BackedUp, float]:
    """A run of `kledger backup`, but for the words of sessions, and its seconds."""
    began = time.perf_counter()
    done = await back_up_in_own_process(access, str(log.directory), log.place / "data", lambda *_: None)
    if log.mixed is not None:
        connection = await BrokerConnection.open(access, "node", name="bench")
        await keep_keys(connection, log.directory)
        await connection.close()
    return done, time.perf_counter() - began


async def written(log: Log) -> None:
    """Make the log and back it up, twice; its first rows."""
    async with broker(log.place / "broker") as access:
        await append(access, log.ahead, log.events, log.sealed)
        await archive(access, log.place / "data", log.events, MASTER)
        first, seconds = await back_up(access, log)
        kept, there = bytes_in(log.directory), bytes_in(log.place / "broker")
        log.rows.append(_bytes_row(log, first, seconds, kept, there))
        await append(access, log.ahead, log.events // MORE, log.sealed)
        before = {path: path.stat().st_mtime_ns for path in _files(log.directory)}
        second, seconds = await back_up(access, log)
        fresh = [path for path in _files(log.directory) if before.get(path) != path.stat().st_mtime_ns]
        _, nothing = await back_up(access, log)
        grown = bytes_in(log.place / "broker") - there
        log.rows.append(_second_row(log, second, seconds, sum(path.stat().st_size for path in fresh), grown, nothing))
    log.events = second.position


def _files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


async def bare_append(log: Log) -> float:
    """Events per second of a bare client that appends the log in atomic batches."""
    seconds, batch = 0.0, []
    async with broker(log.place / "bare") as access:
        client = await bare_client(access, "node")
        for events in read_backup(log.directory):
            batch += [(one.event.subject, one.event.body) for one in events]
            while len(batch) >= BATCH:
                began = time.perf_counter()
                await bare_batch(client, batch[:BATCH])
                seconds += time.perf_counter() - began
                batch = batch[BATCH:]
        await client.close()
    shutil.rmtree(log.place / "bare")
    return (log.events - len(batch)) / seconds


async def brought_back(log: Log) -> tuple[float, Measured]:
    """Seconds of a check and a restore into an empty data directory, and the rebuild there."""
    data = log.place / "new"
    server = EmbeddedServer(data / "broker", max_payload=RESTORE_PAYLOAD_BYTES)
    access = await server.start()
    try:
        began = time.perf_counter()
        manifest = await asyncio.to_thread(intact, log.directory)
        await restore(access, log.directory, manifest=manifest, data=data)
        seconds = time.perf_counter() - began
        refused, master = (log.mixed.refused, MASTER) if log.mixed else (0, b"")
        return seconds, await rebuild(access, log.place / "rebuilt.duckdb", refused, master, data)
    finally:
        await server.stop()
        shutil.rmtree(data, ignore_errors=True)


async def measure(events: int, rounds: int) -> list[dict[str, Any]]:
    """Write the logs, then append and restore in turns. Returns the rows."""
    with tempfile.TemporaryDirectory(prefix="kledger-bench-") as directory:
        mixed = MixedHistory(events + events // MORE)
        logs = [
            Log("plain", events, Path(directory) / "plain", history(events + events // MORE)),
            Log("mixed", events, Path(directory) / "mixed", iter(mixed), mixed),
        ]
        for log in logs:
            log.place.mkdir()
            await written(log)
            shutil.rmtree(log.place / "broker")
        for _ in range(rounds):
            for log in logs:
                log.bare.append(await bare_append(log))
                seconds, rebuilt = await brought_back(log)
                log.restored.append(seconds)
                log.rebuilt.append(rebuilt)
        return [row for log in logs for row in (*log.rows, _back_row(log))]


def _bytes_row(log: Log, done: BackedUp, seconds: float, kept: int, there: int) -> dict[str, Any]:
    return {
        "row": f"backup of the {log.name} log",
        "ours": kept / log.events,
        "raw": there / log.events,
        "unit": "bytes/event",
        "ratio": kept / there,
        "target": "<= 0.4",
        "note": f"raw: the log on the broker's disk; {log.events:,} events in {done.files} files, {seconds:.1f} s, "
        "segments of the archive as hard links",
    }


def _second_row(
    log: Log, done: BackedUp, seconds: float, written_bytes: int, grown: int, nothing: float
) -> dict[str, Any]:
    return {
        "row": f"second backup of the {log.name} log",
        "ours": written_bytes / done.added,
        "raw": grown / done.added,
        "unit": "bytes/event",
        "ratio": written_bytes / grown,
        "target": "<= 0.4",
        "note": f"what it wrote beside what the log grew by: {done.added:,} events in {seconds:.1f} s, of which a run "
        f"without anything new takes {nothing:.1f}",
    }


def _back_row(log: Log) -> dict[str, Any]:
    whole = [log.events / (one + two.seconds) for one, two in zip(log.restored, log.rebuilt, strict=True)]
    return {
        "row": f"restore and rebuild of the {log.name} log",
        "ours": statistics.median(whole),
        "raw": statistics.median(log.bare),
        "unit": "events/s",
        "ratio": statistics.median(mine / bare for mine, bare in zip(whole, log.bare, strict=True)),
        "target": ">= 0.5",
        "note": f"bare: atomic batches of {BATCH:,} of the same; {log.events:,} events, check and restore "
        f"{statistics.median(log.restored):.1f} s, rebuild {statistics.median(one.seconds for one in log.rebuilt):.1f} "
        f"s with process start and digest, {log.rebuilt[0].rebuilt.archive['events']:,} events of the archive",
    }


def run() -> list[dict[str, Any]]:
    """The rows of this benchmark."""
    return uvloop.run(measure(int(os.environ.get("KLEDGER_BENCH_EVENTS", EVENTS)), ROUNDS))


def main() -> None:
    """Measure with the options of the command line, and print the rows."""
    parser = argparse.ArgumentParser(prog="python -m bench.backup", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--events", type=int, default=int(os.environ.get("KLEDGER_BENCH_EVENTS", EVENTS)))
    parser.add_argument("--million", action="store_true", help=f"{MILLION:,} events")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    for line in uvloop.run(measure(MILLION if options.million else options.events, options.rounds)):
        print(line)


if __name__ == "__main__":
    main()

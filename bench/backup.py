"""Backup benchmark: the bytes of a backup beside the log's, what a second one costs, and how fast all is there again.

Two logs, plain and mixed, as in bench/rebuild.py. Each is archived and backed up as a node does it, then grows and is
backed up again. The backup is checked and restored into an empty broker with its archive, and every view is folded
beside that, as `kledger restore-backup` does it: all of it in one time, beside a bare client that appends the same
events in atomic batches. A rebuild afterwards has to make the same views. The same again of a backup with the decoded
columns of the archive, whose key is known. A ratio is the median of the rounds.
`--events N` (KLEDGER_BENCH_EVENTS), `--million` for 1,000,000, `--rounds N`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
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
from bench.rebuild import MASTER, append, archive, broker, bytes_in, rebuild, watch_memory
from ledger.backup.checking import found_intact, read_backup
from ledger.backup.keys import keep_keys
from ledger.backup.process import back_up_in_own_process
from ledger.backup.restoring import restore
from ledger.backup.writing import BackedUp
from ledger.broker.access import BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.server import EmbeddedServer
from ledger.broker.server_config import RESTORE_PAYLOAD_BYTES
from ledger.event import NewEvent
from ledger.integrity.notary_start import NotaryFiles
from ledger.integrity.signing_keys import SigningKeys
from ledger.runtime.gc_tuning import collect_seldom
from producers.operations.sealing import PersonsOf
from projections.engine.digest import digests, state_digest
from projections.engine.duckdb import open_view
from projections.live.files import live_file
from projections.live.from_backup import views_of_backup

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
    back: list[Back] = field(default_factory=list)
    with_columns: list[Back] = field(default_factory=list)

    @property
    def directory(self) -> Path:
        """Of its backup."""
        return self.place / "backup"

    @property
    def larger(self) -> Path:
        """Of a backup with decoded columns."""
        return self.place / "backup-with-columns"

    @property
    def sealed(self) -> PersonsOf | None:
        return self.mixed.persons_of if self.mixed else None


async def back_up(access: BrokerAccess, log: Log, *, columns: bool = False) -> tuple[BackedUp, float]:
    """A run of `kledger backup`, but for the words of sessions, and its seconds."""
    began, directory = time.perf_counter(), log.larger if columns else log.directory
    done = await back_up_in_own_process(access, str(directory), log.place / "data", lambda *_: None, columns)
    if log.mixed is not None:
        connection = await BrokerConnection.open(access, "node", name="bench")
        await keep_keys(connection, directory)
        await connection.close()
    return done, time.perf_counter() - began


async def written(log: Log) -> None:
    """Make the log and back it up, twice; its first rows."""
    async with broker(log.place / "broker") as access:
        await append(access, log.ahead, log.events, log.sealed)
        await archive(access, log.place / "data", log.events, MASTER if log.mixed else b"")
        first, seconds = await back_up(access, log)
        kept, there = bytes_in(log.directory), bytes_in(log.place / "broker")
        log.rows.append(_bytes_row(log, first, seconds, kept, there))
        whole, seconds = await back_up(access, log, columns=True)
        log.rows.append(_bytes_row(log, whole, seconds, bytes_in(log.larger), there, ", with decoded columns"))
        await append(access, log.ahead, log.events // MORE, log.sealed)
        before = {path: path.stat().st_mtime_ns for path in _files(log.directory)}
        second, seconds = await back_up(access, log)
        fresh = [path for path in _files(log.directory) if before.get(path) != path.stat().st_mtime_ns]
        _, nothing = await back_up(access, log)
        await back_up(access, log, columns=True)
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


@dataclass(frozen=True, slots=True)
class Back:
    """Seconds until the log and its views were back, and until the log was; the peak memory of the fold's process."""

    seconds: float
    restored: float
    peak: int | None


async def brought_back(log: Log, *, columns: bool = False) -> Back:
    """Check a backup and restore it with its views into an empty data directory; a rebuild there has to agree."""
    data, master = log.place / "new", MASTER if log.mixed else b""
    directory, key = log.directory, None
    if columns:
        directory, key = log.larger, SigningKeys.open(NotaryFiles.of(log.place / "data").keys).current()
    peak: list[int] = []
    watching = asyncio.create_task(watch_memory(peak, "projections.live.from_backup"))
    server = EmbeddedServer(data / "broker", max_payload=RESTORE_PAYLOAD_BYTES, sync=False)
    try:
        if master:
            (data / "keys").mkdir(parents=True)
            (data / "keys" / "master.key").write_text(master.hex())
        began = time.perf_counter()
        async with views_of_backup(directory, data, key=key) as views:
            manifest = await found_intact(directory)
            access = await server.start()
            await restore(access, directory, manifest=manifest, data=data, key=key, server=server)
            restored = time.perf_counter() - began
            await views.put_in_place(server.access, manifest, lambda *_: None)
            seconds = time.perf_counter() - began
        again = await rebuild(
            server.access, log.place / "rebuilt.duckdb", log.mixed.refused if log.mixed else 0, master, data
        )
        live = live_file(data / "views")
        if live is None or _digest(live) != again.rebuilt.digest:
            raise RuntimeError(f"the views of the {log.name} log are others than those of a rebuild")
        return Back(seconds, restored, max(peak, default=None))
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        await server.stop()
        shutil.rmtree(data, ignore_errors=True)


def _digest(path: Path) -> str:
    with contextlib.closing(open_view(path)) as con:
        return state_digest(digests(con))


async def measure(events: int, rounds: int) -> list[dict[str, Any]]:
    """Write the logs, then append and restore in turns. Returns the rows."""
    collect_seldom()  # as every command does
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
                log.back.append(await brought_back(log))
                log.with_columns.append(await brought_back(log, columns=True))
        return [
            row
            for log in logs
            for row in (*log.rows, _back_row(log, log.back), _back_row(log, log.with_columns, ", with decoded columns"))
        ]


def _bytes_row(log: Log, done: BackedUp, seconds: float, kept: int, there: int, what: str = "") -> dict[str, Any]:
    return {
        "row": f"backup of the {log.name} log{what}",
        "ours": kept / log.events,
        "raw": there / log.events,
        "unit": "bytes/event",
        "ratio": kept / there,
        "target": None if what else "<= 0.4",
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


def _back_row(log: Log, back: list[Back], what: str = "") -> dict[str, Any]:
    whole = [log.events / one.seconds for one in back]
    peak = max((one.peak for one in back if one.peak), default=0)
    return {
        "row": f"restore and views of the {log.name} log{what}",
        "ours": statistics.median(whole),
        "raw": statistics.median(log.bare),
        "unit": "events/s",
        "ratio": statistics.median(mine / bare for mine, bare in zip(whole, log.bare, strict=True)),
        "target": ">= 0.5",
        "note": f"bare: atomic batches of {BATCH:,} of the same; {log.events:,} events, all in place after "
        f"{statistics.median(one.seconds for one in back):.1f} s, the log compared after "
        f"{statistics.median(one.restored for one in back):.1f} s; no digest is made in that time; the fold's "
        f"process took {peak / 2**20:,.0f} MiB at most",
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

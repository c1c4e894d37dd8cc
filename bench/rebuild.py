"""Rebuild benchmark: speed and memory of rebuilding the views from the log, beside only reading it.

Ours: every DuckDB view folded by `projections.live.rebuild` in its own process, up to the last checkpoint. Bare: the
fastest way to read the same stream with the bare client, which only counts. In turns; the ratio is that of the
medians. Then the same from the archive (ledger/archive), which was written before, and its bytes beside the log's.
`--events N` (KLEDGER_BENCH_EVENTS), `--memory` (KLEDGER_BENCH_MEMORY=1) also compares the peak memory with that at five
times the events. For a profile see `bench/profile.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import statistics
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import uvloop
from nats.aio.client import Client

from bench.append import bare_client
from bench.corpus import history
from bench.read import REQUEST, bare_inbox
from ledger.broker.access import BrokerAccess
from ledger.broker.server import EmbeddedServer
from ledger.broker.stream_setup import ensure_stream
from ledger.event import NewEvent
from ledger.integrity.notary import Notary
from ledger.integrity.notary_start import NotaryFiles
from ledger.store.jetstream import JetStreamLedger
from projections.archive.process import write_in_own_process
from projections.archive.writing import SEGMENT_EVENTS
from projections.live.files import discard
from projections.live.rebuild import Rebuilt, rebuild_in_own_process

EVENTS = 200_000
MORE = 5
ROUNDS = 3
APPEND = 10_000
LOOK_EVERY_S = 0.02
SIGNED_WITHIN_S = 600.0


@asynccontextmanager
async def broker(directory: Path) -> AsyncIterator[BrokerAccess]:
    """An embedded server with an empty stream."""
    server = EmbeddedServer(directory)
    access = await server.start()
    try:
        await ensure_stream(access)
        yield access
    finally:
        await server.stop()


async def append(access: BrokerAccess, events: Iterator[NewEvent], count: int) -> None:
    """Append the next `count` events to the log."""
    ledger = await JetStreamLedger.connect(access)
    try:
        while count:
            part = list(islice(events, min(APPEND, count)))
            await ledger.append_many(part)
            count -= len(part)
    finally:
        await ledger.close()


async def bare_read(client: Client, name: str, count: int) -> float:
    """Messages per second of reading `count` of them with the bare client."""
    began = time.perf_counter()
    await bare_inbox(client, name, count)
    return count / (time.perf_counter() - began)


@dataclass(frozen=True, slots=True)
class Measured:
    """One rebuild: its result, the seconds with process start and digest, its peak memory in bytes or None."""

    rebuilt: Rebuilt
    seconds: float
    peak: int | None


async def archive(access: BrokerAccess, data: Path, events: int) -> None:
    """Have a notary sign the log, and archive it in the directory `data`."""
    ledger = await JetStreamLedger.connect(access, role="reader")
    notary = Notary(ledger, NotaryFiles.of(data))
    signing = asyncio.create_task(notary.run())
    try:
        signed = (await notary.certify(events, timeout=SIGNED_WITHIN_S)).position
    finally:
        signing.cancel()
        await asyncio.gather(signing, return_exceptions=True)
        await notary.close()
        await ledger.close()
    await write_in_own_process(access, data, signed, min(SEGMENT_EVENTS, events))


def bytes_in(directory: Path) -> int:
    """The bytes of all files in a directory."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


async def rebuild(access: BrokerAccess, path: Path, data: Path | None = None) -> Measured:
    """Rebuild every view into a temporary file; from the archive in `data`, where one is named."""
    peak: list[int] = []
    watching = asyncio.create_task(watch_memory(peak))
    began = time.perf_counter()
    try:
        rebuilt = await rebuild_in_own_process(access, path, None, data=data)
        seconds = time.perf_counter() - began
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        discard(path)
    if rebuilt.refused:
        raise RuntimeError(f"{rebuilt.refused} of {rebuilt.events} generated events were refused: nothing is compared")
    return Measured(rebuilt, seconds, max(peak, default=None))


async def watch_memory(seen: list[int]) -> None:
    """Sample the high-water mark of the rebuild's process; no samples where there is no /proc."""
    process: Path | None = None
    while True:
        if process is None:
            process = next(iter(rebuild_processes()), None)
        else:
            with contextlib.suppress(OSError):
                mark = re.search(r"VmHWM:\s+(\d+) kB", (process / "status").read_text())
                if mark:
                    seen.append(int(mark[1]) * 1024)
        await asyncio.sleep(LOOK_EVERY_S)


def rebuild_processes() -> Iterator[Path]:
    """Children of this process that run a rebuild."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and b"projections.live.rebuild" in (process / "cmdline").read_bytes():
                yield process


async def measure(events: int, memory: bool) -> list[dict[str, Any]]:
    """Read and rebuild in turns. Returns the rows."""
    with tempfile.TemporaryDirectory(prefix="kledger-bench-") as directory:
        async with broker(Path(directory) / "broker") as access:
            events_ahead = history(events * MORE)
            await append(access, events_ahead, events)
            file = Path(directory) / "rebuilt.duckdb"
            client = await bare_client(access, "admin")
            try:
                await bare_read(client, "warm", min(events, 10_000))
                raw, ours = [], []
                data = Path(directory)
                await archive(access, data, events)
                archived = []
                for turn in range(ROUNDS):
                    raw.append(await bare_read(client, f"bare{turn}", events))
                    ours.append(await rebuild(access, file))
                    archived.append(await rebuild(access, file, data))
            finally:
                await client.close()
            rows = [_rate_row(events, ours, raw), _archive_row(events, archived, ours, raw), _bytes_row(events, data)]
            if memory:
                await append(access, events_ahead, events * (MORE - 1))
                rows.append(_memory_row(events, ours, await rebuild(access, file)))
            return rows


def _rate_row(events: int, ours: list[Measured], raw: list[float]) -> dict[str, Any]:
    mine, bare = statistics.median(one.rebuilt.rate for one in ours), statistics.median(raw)
    whole = statistics.median(one.seconds for one in ours)
    return {
        "row": "rebuild of every DuckDB view",
        "ours": mine,
        "raw": bare,
        "unit": "events/s",
        "ratio": mine / bare,
        "target": ">= 0.3",
        "note": f"bare: reading alone, inbox, {REQUEST:,} a request; {events:,} events of 1 KB, medians of {ROUNDS}; "
        f"{whole:.1f} s with process start and digest",
    }


def _archive_row(events: int, ours: list[Measured], from_log: list[Measured], raw: list[float]) -> dict[str, Any]:
    mine, bare = statistics.median(one.rebuilt.rate for one in ours), statistics.median(raw)
    if {one.rebuilt.digest for one in ours} != {one.rebuilt.digest for one in from_log}:
        raise RuntimeError("the views from the archive are not those from the log: nothing is compared")
    read, peaks = ours[0].rebuilt.archive["events"], [one.peak for one in ours if one.peak is not None]
    return {
        "row": "rebuild of every DuckDB view, from the archive",
        "ours": mine,
        "raw": bare,
        "unit": "events/s",
        "ratio": mine / bare,
        "target": ">= 0.7",
        "note": f"bare: reading the log alone, as above; {read:,} of {events:,} events are archived, equal digests; "
        f"peak memory {max(peaks, default=0) / 2**20:,.0f} MiB",
    }


def _bytes_row(events: int, data: Path) -> dict[str, Any]:
    kept, log = bytes_in(data / "archive") / events, bytes_in(data / "broker") / events
    parts = ", ".join(f"{name} {bytes_in(data / 'archive' / name) / events:,.0f}" for name in ("events", "columns"))
    return {
        "row": "archive on the disk, beside the log",
        "ours": kept,
        "raw": log,
        "unit": "bytes/event",
        "ratio": kept / log,
        "target": "",
        "note": parts,
    }


def _memory_row(events: int, few: list[Measured], many: Measured) -> dict[str, Any]:
    peaks = [one.peak for one in few if one.peak is not None]
    known = bool(peaks) and many.peak is not None
    mine, base = (many.peak or 0) / 2**20, max(peaks, default=0) / 2**20
    return {
        "row": f"rebuild, peak memory at {MORE} times the events",
        "ours": mine if known else None,
        "raw": base if known else None,
        "unit": "MiB",
        "ratio": mine / base if known else None,
        "target": "<= 1.3",
        "note": f"{events * MORE:,} events beside {events:,}, ours both; {many.rebuilt.rate:,.0f} events/s"
        if known
        else "this system does not tell the memory of another process",
    }


def run() -> list[dict[str, Any]]:
    """The rows of this benchmark."""
    option = os.environ.get
    return uvloop.run(measure(int(option("KLEDGER_BENCH_EVENTS", EVENTS)), bool(option("KLEDGER_BENCH_MEMORY"))))


def main() -> None:
    """Measure with the options of the command line, and print the rows."""
    parser = argparse.ArgumentParser(prog="python -m bench.rebuild", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--events", type=int, default=int(os.environ.get("KLEDGER_BENCH_EVENTS", EVENTS)))
    parser.add_argument("--memory", action="store_true", help=f"also the peak memory, at {MORE} times the events")
    options = parser.parse_args()
    for line in uvloop.run(measure(options.events, options.memory)):
        print(line)


if __name__ == "__main__":
    main()

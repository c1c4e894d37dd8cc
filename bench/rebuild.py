"""Rebuild benchmark: speed and memory of rebuilding the views from the log, beside only reading it.

Three logs: the plain history of one owner (bench/corpus.py), the mixed one of 500 owners, sealed as a node seals it
(bench/mixed.py), and events about memories alone, in clear and sealed. Ours: every DuckDB view folded by
`projections.live.rebuild` in its own process, up to the last checkpoint. Bare: the fastest way to read the same stream
with the bare client, which only counts. Each is rebuilt from an archive (ledger/archive) as well, whose bytes are told
beside the log's. All in turns; a ratio is that of the medians. `--events N` (KLEDGER_BENCH_EVENTS),
`--memory` (KLEDGER_BENCH_MEMORY=1) also compares the peak memory with that at five times the events. For a profile see
`bench/profile.py`.
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
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import uvloop
from nats.aio.client import Client

from bench.append import bare_client
from bench.corpus import history
from bench.mixed import MixedHistory, profile_history
from bench.read import REQUEST, bare_inbox
from ledger.archive.segments import SEGMENT_EVENTS
from ledger.broker.access import BrokerAccess
from ledger.broker.server import EmbeddedServer
from ledger.broker.stream_setup import ensure_stream
from ledger.event import NewEvent
from ledger.integrity.notary import Notary
from ledger.integrity.notary_start import NotaryFiles
from ledger.privacy.vault_jetstream import JetStreamVault, ensure_keys_bucket
from ledger.store.jetstream import JetStreamLedger
from ledger.stream import Ledger
from producers.operations.sealing import PersonsOf, SealingLedger
from projections.archive.process import write_in_own_process
from projections.live.files import discard
from projections.live.rebuild import Rebuilt, rebuild_in_own_process

EVENTS = 200_000
MORE = 5
ROUNDS = 3
APPEND = 10_000
MASTER = bytes(32)
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


async def append(
    access: BrokerAccess, events: Iterator[NewEvent], count: int, persons_of: PersonsOf | None = None
) -> None:
    """Append the next `count` events to the log; with `persons_of`, what belongs to persons is sealed."""
    async with contextlib.AsyncExitStack() as stack:
        ledger: Ledger
        ledger = plain = await JetStreamLedger.connect(access)
        stack.push_async_callback(plain.close)
        if persons_of is not None:
            await ensure_keys_bucket(access)
            vault = await JetStreamVault.open(access, MASTER)
            stack.push_async_callback(vault.close)
            ledger = SealingLedger(plain, vault, persons_of)
        while count:
            part = list(islice(events, min(APPEND, count)))
            await ledger.append_many(part)
            count -= len(part)


async def nobody(_org: str, _items: Sequence[str]) -> Mapping[str, Sequence[str]]:
    """No item belongs to a person."""
    return {}


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


async def archive(access: BrokerAccess, data: Path, events: int, master: bytes) -> None:
    """Have a notary sign the log, and archive it in the directory `data`; `master` opens sealed events."""
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
    await write_in_own_process(access, data, signed, min(SEGMENT_EVENTS, events), master=master)


def bytes_in(directory: Path) -> int:
    """The bytes of all files in a directory."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


async def rebuild(
    access: BrokerAccess, path: Path, refused: int = 0, master: bytes = b"", data: Path | None = None
) -> Measured:
    """Rebuild every view into a temporary file, from the archive in `data`, where one is named.

    `refused` events are made to be refused; `master` opens sealed ones.
    """
    peak: list[int] = []
    watching = asyncio.create_task(watch_memory(peak))
    began = time.perf_counter()
    try:
        rebuilt = await rebuild_in_own_process(access, path, None, master=master, data=data)
        seconds = time.perf_counter() - began
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
        discard(path)
    if rebuilt.refused != refused:
        raise RuntimeError(
            f"{rebuilt.refused} of {rebuilt.events} events were refused, not {refused}: nothing is compared"
        )
    return Measured(rebuilt, seconds, max(peak, default=None))


async def watch_memory(seen: list[int], module: str = "projections.live.rebuild") -> None:
    """Sample the high-water mark of a child that runs `module`; no samples where there is no /proc."""
    process: Path | None = None
    while True:
        if process is None:
            process = next(iter(processes_of(module)), None)
        else:
            with contextlib.suppress(OSError):
                mark = re.search(r"VmHWM:\s+(\d+) kB", (process / "status").read_text())
                if mark:
                    seen.append(int(mark[1]) * 1024)
        await asyncio.sleep(LOOK_EVERY_S)


def processes_of(module: str) -> Iterator[Path]:
    """Children of this process that run a module."""
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError):
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid() and module.encode() in (process / "cmdline").read_bytes():
                yield process


@dataclass(slots=True)
class Log:
    """A log in a broker of its own, and what was measured of it."""

    name: str
    events: int
    directory: Path
    access: BrokerAccess
    client: Client
    ahead: Iterator[NewEvent]
    mixed: MixedHistory | None = None
    sealed: PersonsOf | None = None
    raw: list[float] = field(default_factory=list)
    ours: list[Measured] = field(default_factory=list)
    archived: list[Measured] = field(default_factory=list)

    @property
    def data(self) -> Path:
        """Where its archive is, beside the broker's files."""
        return self.directory.with_name(f"{self.directory.name}-data")

    @property
    def master(self) -> bytes:
        """What opens its sealed events."""
        return MASTER if self.sealed else b""

    async def append(self, count: int) -> None:
        await append(self.access, self.ahead, count, self.sealed)

    async def measure(self, directory: Path, data: Path | None = None) -> Measured:
        refused = self.mixed.refused if self.mixed else 0
        return await rebuild(self.access, directory / "rebuilt.duckdb", refused, self.master, data)


async def _logs(events: int, directory: Path, stack: contextlib.AsyncExitStack) -> list[Log]:
    """The logs, each with its events."""
    mixed = MixedHistory(events * MORE)
    logs = []
    for name, count, ahead, sealed in (
        ("plain", events, history(events * MORE), None),
        ("mixed", events, iter(mixed), mixed.persons_of),
        ("memories", events, profile_history(events), None),
        ("memories sealed", events, profile_history(events), nobody),
    ):
        place = directory / name.replace(" ", "-")
        access = await stack.enter_async_context(broker(place))
        client = await bare_client(access, "admin")
        stack.push_async_callback(client.close)
        log = Log(name, count, place, access, client, ahead, mixed if name == "mixed" else None, sealed)
        await log.append(count)
        logs.append(log)
    return logs


async def measure(events: int, memory: bool) -> list[dict[str, Any]]:
    """Read and rebuild in turns. Returns the rows."""
    with tempfile.TemporaryDirectory(prefix="kledger-bench-") as directory:
        async with contextlib.AsyncExitStack() as stack:
            logs = await _logs(events, Path(directory), stack)
            for log in logs:
                await bare_read(log.client, "warm", min(log.events, 10_000))
            plain, mixed, *memories = logs
            for log in logs:
                await archive(log.access, log.data, log.events, log.master)
            for turn in range(ROUNDS):
                for log in logs:
                    log.raw.append(await bare_read(log.client, f"bare{turn}", log.events))
                    log.ours.append(await log.measure(Path(directory)))
                for log in logs:
                    log.archived.append(await log.measure(Path(directory), log.data))
            rows = [_rate_row("rebuild of every DuckDB view", plain, ">= 0.7")]
            rows.append(_rate_row("rebuild of a mixed log, half of its owners sealed", mixed, ">= 0.5"))
            rows += [_archive_row(plain, ">= 0.7"), _archive_row(mixed, ">= 0.5"), _bytes_row(plain), _bytes_row(mixed)]
            rows += [_beside_plain_row(log, plain) for log in memories]
            rows += [_beside_plain_row(log, plain, archived=True) for log in memories]
            if memory:
                for log in (plain, mixed):
                    await log.append(events * (MORE - 1))
                    rows.append(_memory_row(log.name, events, log.ours, await log.measure(Path(directory))))
                    await archive(log.access, log.data, events * MORE, log.master)
                    many = await log.measure(Path(directory), log.data)
                    rows.append(_memory_row(f"{log.name} (archived)", events, log.archived, many))
            return rows


def _rate(log: Log, archived: bool = False) -> float:
    return statistics.median(one.rebuilt.rate for one in (log.archived if archived else log.ours))


def _rate_row(row: str, log: Log, target: str) -> dict[str, Any]:
    mine, bare = _rate(log), statistics.median(log.raw)
    whole = statistics.median(one.seconds for one in log.ours)
    return {
        "row": row,
        "ours": mine,
        "raw": bare,
        "unit": "events/s",
        "ratio": mine / bare,
        "target": target,
        "note": f"bare: reading alone, inbox, {REQUEST:,} a request; {log.events:,} events of 1 KB, medians of "
        f"{ROUNDS}; {whole:.1f} s with process start and digest",
    }


def _archive_row(log: Log, target: str) -> dict[str, Any]:
    if {one.rebuilt.digest for one in log.archived} != {one.rebuilt.digest for one in log.ours}:
        raise RuntimeError("the views from the archive are not those from the log: nothing is compared")
    mine, bare = statistics.median(one.rebuilt.rate for one in log.archived), statistics.median(log.raw)
    read, peaks = log.archived[0].rebuilt.archive["events"], [one.peak for one in log.archived if one.peak is not None]
    return {
        "row": f"rebuild of the {log.name} log, from the archive",
        "ours": mine,
        "raw": bare,
        "unit": "events/s",
        "ratio": mine / bare,
        "target": target,
        "note": f"bare: reading the log alone, as above; {read:,} of {log.events:,} events from there, equal digests, "
        f"peak memory {max(peaks, default=0) / 2**20:,.0f} MiB",
    }


def _bytes_row(log: Log) -> dict[str, Any]:
    directory = log.data / "archive"
    kept, whole = bytes_in(directory) / log.events, bytes_in(log.directory) / log.events
    parts = ", ".join(f"{name} {bytes_in(directory / name) / log.events:,.0f}" for name in ("events", "columns"))
    return {
        "row": f"archive of the {log.name} log on the disk, beside it",
        "ours": kept,
        "raw": whole,
        "unit": "bytes/event",
        "ratio": kept / whole,
        "target": "",
        "note": parts,
    }


def _beside_plain_row(log: Log, plain: Log, archived: bool = False) -> dict[str, Any]:
    """Events about memories, beside the rebuild of the plain log in the same run, both from the log or the archive."""
    mine, base = _rate(log, archived), _rate(plain, archived)
    return {
        "row": f"rebuild of events about {log.name} alone{', from the archive' if archived else ''}",
        "ours": mine,
        "raw": base,
        "unit": "events/s",
        "ratio": mine / base,
        "target": ">= 0.5",
        "note": f"raw: our rebuild of the plain log, likewise; {log.events:,} events of 1.3 KB, read bare at "
        f"{statistics.median(log.raw):,.0f}/s, medians of {ROUNDS}",
    }


def _memory_row(log: str, events: int, few: list[Measured], many: Measured) -> dict[str, Any]:
    peaks = [one.peak for one in few if one.peak is not None]
    known = bool(peaks) and many.peak is not None
    mine, base = (many.peak or 0) / 2**20, max(peaks, default=0) / 2**20
    return {
        "row": f"rebuild of the {log} log, peak memory at {MORE} times the events",
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

"""Visibility benchmark: time until a read sees a published event, beside the two writes with a bare client and DuckDB.

A real node (`kledger up`) in a process of its own. From the start of the append, over HTTP or directly to the log,
until `GET /api/knowledge/{id}?min_position=P` answers 200, or until the newest item of
`GET /api/knowledge?min_position=P` is the one; neither need wait for the view. One at a time, in turns with the bare
side (one acknowledged publish, then one committed row in a DuckDB file); then 200 a second on a fixed schedule, where
the time counts from the scheduled start, whether or not the client was ready; then the same while other processes take
half of the machine.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import duckdb
import orjson
import uvloop
from nats.js import JetStreamContext

from bench.append import bare_client, events_of
from bench.corpus import EVENT_BYTES, payloads
from ledger.broker.access import BrokerAccess
from ledger.broker.server import EmbeddedServer
from ledger.broker.server_config import ServerFiles
from ledger.broker.stream_setup import ensure_stream
from ledger.store.jetstream import JetStreamLedger

ROOT = Path(__file__).parents[1]
KLEDGER = (sys.executable, "-m", "producers.cli.main")
READY_SECONDS = 600  # a node that has its views and vectors yet to make is ready once it has them
STOP_SECONDS = 30
LOG_SHOWN = 4_000  # characters
LONGEST_IDLE = 2.0  # seconds

ROUNDS = 5
SAMPLES = 60
WARM_UP = 20
RATE = 200
SECONDS = 10.0
STEADY_ROUNDS = 3
# A queue that grows makes p99 and p50 alike: beyond either of these their ratio says nothing.
MOST_GROWTH = 2  # the last second's p50 beside the first's
MOST_WAITING = 5  # the p50 beside that of one at a time

Attempt = Callable[[], Awaitable[None]]
"""Publish a new item and return once a read has seen it."""
Read = Callable[["HttpClient", str, int], Awaitable[None]]
"""Read an item that was published at a position."""


def environment(**more: str) -> dict[str, str]:
    """This process's environment without settings of the product, except those given."""
    unset = {name: value for name, value in os.environ.items() if not name.startswith("KLEDGER_")}
    return {**unset, **more}


@dataclass(frozen=True, slots=True)
class Node:
    """A running node: its HTTP address `host:port`, access to its broker, and its process id."""

    http: str
    broker: BrokerAccess
    pid: int


@asynccontextmanager
async def running_node(directory: Path, **settings: str) -> AsyncIterator[Node]:
    """Start a node in a process of its own, in an empty directory. Raises RuntimeError when it does not start.

    `settings` are further variables of its environment.

    When the block fails, the end of the node's log is written to standard error.
    """
    data, log = directory / "data", directory / "node.log"
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *(*KLEDGER, "up", "--data", str(data), "--http", "127.0.0.1:0"),
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
            cwd=ROOT,
            # a node that does not keep up is to be seen as such
            env=environment(KLEDGER_LIMIT_CONNECTIONS="100000", **settings),
        )
    try:
        assert process.stdout is not None  # it is a pipe
        async with asyncio.timeout(READY_SECONDS):
            ready = (await process.stdout.readline()).decode()
        addresses = re.search(r"ready: http://(\S+) .*· nats (\S+)", ready)
        if addresses is None:
            raise RuntimeError(
                f"the node did not start; its log ends with\n{log.read_text('utf-8', 'replace')[-3000:]}"
            )
        passwords = orjson.loads(ServerFiles(data / "broker").passwords.read_bytes())
        yield Node(addresses[1], BrokerAccess(addresses[2], passwords), process.pid)
    except Exception:
        sys.stderr.write(f"the node's log ends with\n{log.read_text('utf-8', 'replace')[-LOG_SHOWN:]}\n")
        raise
    finally:
        await _stop(process)


async def _stop(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.terminate()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()


class HttpClient:
    """A minimal HTTP/1.1 client with kept-alive connections, one for each concurrent request.

    It is minimal so that the client's own work has little weight in the measurement.
    """

    def __init__(self, address: str, *, agent: str | None = None, user: str | None = None) -> None:
        self._headers = "" if agent is None else f"X-Ledger-Agent: {agent}\r\n"
        self._headers += "" if user is None else f"X-Ledger-User: {user}\r\n"
        self._host, _, port = address.rpartition(":")
        self._port = int(port)
        self._idle: list[tuple[float, asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ask(self, method: str, target: str, body: bytes = b"") -> Any:
        """Send a request and parse its answer. Raises RuntimeError for any status but 2xx."""
        reader, writer = await self._connection()
        head = f"{method} {target} HTTP/1.1\r\nHost: {self._host}:{self._port}\r\n{self._headers}"
        if body:
            head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        writer.write(f"{head}\r\n".encode() + body)
        headers = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", headers)
        answer = await reader.readexactly(int(length[1]) if length else 0)
        self._idle.append((time.monotonic(), reader, writer))
        status = int(headers.split(maxsplit=2)[1])
        if not 200 <= status < 300:
            raise RuntimeError(f"{method} {target} was answered {status}: {answer.decode('utf-8', 'replace')[:500]}")
        return orjson.loads(answer)

    async def _connection(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        while self._idle:
            since, reader, writer = self._idle.pop()
            # the server closes idle connections, so older ones are not reused
            if time.monotonic() - since < LONGEST_IDLE and not reader.at_eof():
                return reader, writer
            writer.close()
        return await asyncio.open_connection(self._host, self._port)

    def close(self) -> None:
        for _, _, writer in self._idle:
            writer.close()


async def seen(http: HttpClient, item: str, position: int) -> None:
    """Read the item from a view that is at `position` or later."""
    answer = await http.ask("GET", f"/api/knowledge/{item}?{urlencode({'min_position': position})}")
    if answer["id"] != item:
        raise RuntimeError(f"{item} was asked for, {answer['id']} was answered")


async def listed(http: HttpClient, item: str, position: int) -> None:
    """Read the newest item of a view that is at `position` or later."""
    answer = await http.ask("GET", f"/api/knowledge?{urlencode({'limit': 1, 'min_position': position})}")
    if (newest := answer["results"][0]["id"]) != item:
        raise RuntimeError(f"{item} is the newest item, {newest} was answered")


def through_http(http: HttpClient, bodies: list[bytes], read: Read = seen) -> Attempt:
    """An attempt that saves one of the bodies over HTTP and reads it back."""

    async def attempt() -> None:
        saved = await http.ask("POST", "/api/knowledge", bodies.pop())
        await read(http, saved["id"], saved["position"])

    return attempt


def through_the_log(ledger: JetStreamLedger, http: HttpClient, count: int) -> Attempt:
    """An attempt that appends to the log and reads back over HTTP; usable `count` times."""
    events = events_of(EVENT_BYTES, count)

    async def attempt() -> None:
        event = events.pop()
        appended = await ledger.append(event)
        await seen(http, event.entity_id, appended.position)

    return attempt


def bare(jetstream: JetStreamContext, con: duckdb.DuckDBPyConnection, count: int) -> Attempt:
    """An attempt with one acknowledged publish and one committed row only; usable `count` times."""
    con.execute("CREATE TABLE item (id VARCHAR, body VARCHAR)")
    items = [(payload["id"], orjson.dumps(payload)) for payload in islice(payloads(count), count)]

    async def attempt() -> None:
        item, body = items.pop()
        body = body.ljust(EVENT_BYTES)
        await jetstream.publish(f"ledger.default.knowledge.{item}.saved.user.bench", body)
        con.execute("INSERT INTO item VALUES (?, ?)", [item, body.decode()])

    return attempt


async def one_at_a_time(attempt: Attempt, count: int) -> list[float]:
    """Milliseconds of each attempt."""
    taken = []
    for _ in range(count):
        began = time.perf_counter()
        await attempt()
        taken.append((time.perf_counter() - began) * 1_000)
    return taken


async def steadily(attempt: Attempt, seconds: float) -> list[float]:
    """Milliseconds of each attempt, at RATE per second, counted from its scheduled start. The first second warms up."""
    start = time.perf_counter() + 0.1  # the loop's own clock counts whole milliseconds

    async def one(number: int) -> float:
        due = start + number / RATE
        await asyncio.sleep(due - time.perf_counter())
        await attempt()
        return (time.perf_counter() - due) * 1_000

    taken = await asyncio.gather(*(one(number) for number in range(int((seconds + 1) * RATE))))
    return taken[RATE:]


def percentile(values: Sequence[float], percent: int) -> float:
    """The value of a percentile."""
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


async def measure(seconds: float) -> list[dict[str, Any]]:
    """Publish every way in turns. Returns the rows."""
    each = WARM_UP + ROUNDS * SAMPLES
    steady = int((seconds + 1) * RATE) * STEADY_ROUNDS * 2
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kledger-bench-")))
        server = EmbeddedServer(directory / "bare")
        access = await server.start()
        stack.push_async_callback(server.stop)
        await ensure_stream(access)
        client = await bare_client(access, "node")
        stack.push_async_callback(client.close)
        con = stack.enter_context(duckdb.connect(str(directory / "bare.duckdb")))

        (directory / "node").mkdir()
        node = await stack.enter_async_context(running_node(directory / "node"))
        ledger = await JetStreamLedger.connect(node.broker)
        stack.push_async_callback(ledger.close)
        http = HttpClient(node.http)
        stack.callback(http.close)
        bodies = [orjson.dumps(payload) for payload in payloads(2 * each + steady)]
        attempts = {
            "http": through_http(http, bodies),
            "log": through_the_log(ledger, http, each + steady // 2),
            "list": through_http(http, bodies, listed),
            "bare": bare(client.jetstream(), con, each),
        }
        alone: dict[str, list[float]] = {way: [] for way in attempts}
        for attempt in attempts.values():
            await one_at_a_time(attempt, WARM_UP)
        for _ in range(ROUNDS):
            for way, attempt in attempts.items():
                alone[way] += await one_at_a_time(attempt, SAMPLES)
        under_load: dict[str, list[list[float]]] = {"http": [], "log": [], BUSY: []}
        for _ in range(STEADY_ROUNDS):
            for way, rounds in under_load.items():
                async with AsyncExitStack() as others:
                    if way == BUSY:
                        await others.enter_async_context(half_the_machine())
                    rounds.append(await steadily(attempts["http" if way == BUSY else way], seconds))
    alone[BUSY] = alone["http"]
    return [
        *(_alone_row(way, alone[way], alone["bare"]) for way in ("http", "log", "list")),
        *(_steady_row(way, rounds, seconds, statistics.median(alone[way])) for way, rounds in under_load.items()),
    ]


@asynccontextmanager
async def half_the_machine() -> AsyncIterator[None]:
    """Other processes that take half of the processors while the block runs."""
    busy = (sys.executable, "-c", "while True: pass")
    processes = [await asyncio.create_subprocess_exec(*busy) for _ in range(max(1, (os.cpu_count() or 2) // 2))]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            await process.wait()


BUSY = "busy"
WAYS = {
    "http": "POST until a read sees it",
    "log": "append until a read sees it",
    "list": "POST until a list shows it",
    BUSY: "POST until a read sees it, others take half of the machine",
}


def _alone_row(way: str, ours: list[float], raw: list[float]) -> dict[str, Any]:
    mine, bare_ms = statistics.median(ours), statistics.median(raw)
    return {
        "row": f"{WAYS[way]}, p50",
        "ours": mine,
        "raw": bare_ms,
        "unit": "ms",
        "ratio": mine / bare_ms,
        "target": "<= 4",
        "note": f"bare: publish + one-row DuckDB commit; one at a time, {len(ours)} of 1 KB, fsync always; "
        f"p99 {percentile(ours, 99):.1f} ms, bare {percentile(raw, 99):.1f} ms",
    }


def _steady_row(way: str, rounds: list[list[float]], seconds: float, alone: float) -> dict[str, Any]:
    middle = statistics.median(percentile(one, 50) for one in rounds)
    late = statistics.median(percentile(one, 99) for one in rounds)
    ratios = [percentile(one, 99) / percentile(one, 50) for one in rounds]
    slowest = max(map(max, rounds))
    note = f"p99 beside its own p50, which is {middle / alone:.1f} times that alone; {seconds:g} s on a fixed schedule"
    note += f", median of {len(rounds)} rounds ({min(ratios):.1f} to {max(ratios):.1f}); slowest {slowest:.0f} ms"
    first = statistics.median(statistics.median(one[:RATE]) for one in rounds)
    last = statistics.median(statistics.median(one[-RATE:]) for one in rounds)
    kept_up = last <= MOST_GROWTH * first and middle <= MOST_WAITING * alone
    if not kept_up:
        note = f"DID NOT KEEP UP: p50 was {first:.0f} ms in the first second, {last:.0f} in the last; {note}"
    return {
        "row": f"{WAYS[way]}, {RATE} a second: p99 to p50",
        "ours": late,
        "raw": middle,
        "unit": "ms",
        "ratio": statistics.median(ratios) if kept_up else None,
        "target": "<= 5",
        "note": note,
    }


def run() -> list[dict[str, Any]]:
    """The rows of this benchmark."""
    return uvloop.run(measure(SECONDS))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.visible", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"how long a round of {RATE} a second takes")
    for line in uvloop.run(measure(parser.parse_args().seconds)):
        print(line)

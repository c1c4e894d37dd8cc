"""Growth benchmark: an unrecorded search over HTTP at 10,000 and at 100,000 items, beside the bare engine.

For each size a real node imports `bench.grown`, and so does the bare engine (Qdrant Edge as it comes, in a process with
a minimal HTTP server around it: same server library, no framework, prepared query vectors; its segment as it is after
the upserts, as the node's is). One client, in turns with the engine's own query in this process; then 8 clients. Told
beside: the floor of HTTP (`/health/live`), `/health`, listing 20 items, resident memory of the vector process, and how
long the vectors follow an import.

`python -m bench.growth [--items 10000 100000] [--million]`.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import statistics
import tempfile
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from itertools import cycle, islice, pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson
import uvloop

from bench.grown import grown, queries_of
from bench.minimal_server import minimal_server
from bench.recall import data_directory
from bench.search import Ask, BareEngine, absent, imported, start_import, timed, vectors_at
from bench.visible import HttpClient, percentile, running_node

SIZES = (10_000, 100_000)
MILLION = 1_000_000
ROUNDS = 5
QUERIES = 100
WARM_UP = 50
CLIENTS = 8
CLIENT_SECONDS = 3.0
CATCH_UP_SECONDS = 3_600


@dataclass(slots=True)
class Measured:
    """What one size gave: milliseconds of each way, searches a second of the many clients, and what is told beside."""

    items: int
    taken: dict[str, list[float]] = field(default_factory=dict)
    a_second: dict[str, list[float]] = field(default_factory=dict)
    resident: float = 0.0
    import_seconds: float = 0.0
    vectors_after: float = 0.0

    def p50(self, way: str) -> float:
        """The median of one way, in milliseconds."""
        return statistics.median(self.taken[way])


async def measure(data: Path, items: int) -> Measured:
    """Everything at one size."""
    queries = queries_of(data)
    measured = Measured(items)
    async with AsyncExitStack() as stack:
        directory = Path(tempfile.mkdtemp(prefix="kledger-bench-"))
        stack.callback(shutil.rmtree, directory, ignore_errors=True)
        corpus, asked = directory / "items.jsonl", directory / "queries.json"
        corpus.write_bytes(b"".join(orjson.dumps(each) + b"\n" for each in grown(data, items)))
        asked.write_bytes(orjson.dumps(queries))
        (directory / "node").mkdir()
        node = await stack.enter_async_context(running_node(directory / "node"))
        http = HttpClient(node.http)
        stack.callback(http.close)
        result = await imported(await start_import(corpus, node.http))
        measured.import_seconds = result["seconds"]
        began = time.perf_counter()
        async with asyncio.timeout(CATCH_UP_SECONDS):
            while await vectors_at(http) < int(result["position"]):  # noqa: ASYNC110  # of another process
                await asyncio.sleep(0.1)
        measured.vectors_after = time.perf_counter() - began
        minimal = HttpClient(
            await stack.enter_async_context(minimal_server("minimal_search", corpus, asked, directory / "minimal"))
        )
        stack.callback(minimal.close)
        engine = BareEngine(directory / "engine", list(grown(data, items)), queries)
        stack.callback(engine.close)
        ways: dict[str, Ask] = {
            "node": lambda query: http.ask(
                "GET", f"/api/knowledge/search?{urlencode({'q': query, 'record': 'false'})}"
            ),
            "engine": engine.ask,
            "minimal": lambda query: minimal.ask("GET", f"/?{urlencode({'q': query})}"),
            "floor": lambda _: http.ask("GET", "/health/live"),
            "health": lambda _: http.ask("GET", "/health"),
            "list": lambda _: http.ask("GET", "/api/knowledge?limit=20"),
        }
        await _in_turns(measured, ways, queries)
        measured.resident = _resident(node.pid)
    return measured


async def _in_turns(measured: Measured, ways: dict[str, Ask], queries: Sequence[str]) -> None:
    measured.taken = {way: [] for way in ways}
    measured.a_second = {"node": [], "minimal": []}
    endless = cycle(queries)
    for way in ways.values():
        await timed(way, queries[:WARM_UP])
    for _ in range(ROUNDS):
        batch = list(islice(endless, QUERIES))
        for name, way in ways.items():
            measured.taken[name] += await timed(way, batch if name in ("node", "engine", "minimal") else batch[:30])
        for name, rates in measured.a_second.items():
            rates.append(await _many(ways[name], queries))


async def _many(ask: Ask, queries: Sequence[str]) -> float:
    """Answers a second to the many clients, each of which asks again once it is answered."""
    began = time.perf_counter()
    answered = 0

    async def client(number: int) -> None:
        nonlocal answered
        for query in cycle([*queries[number * 10 :], *queries[: number * 10]]):
            if time.perf_counter() - began > CLIENT_SECONDS:
                return
            await ask(query)
            answered += 1

    await asyncio.gather(*(client(number) for number in range(CLIENTS)))
    return answered / (time.perf_counter() - began)


def _resident(node: int) -> float:
    """Megabytes of memory of the node's vector process, the pages of its files included."""
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            told = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
            command = (status.parent / "cmdline").read_text()
        except OSError:  # it has ended meanwhile
            continue
        if int(told["PPid"]) == node and "projections.vectors.process" in command:
            return int(told["VmRSS"].split()[0]) / 1_000
    raise RuntimeError("the node has no vector process")


def _rows(sizes: Sequence[Measured]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for one in sizes:
        node, minimal = (statistics.median(one.a_second[way]) for way in ("node", "minimal"))
        at = f"at {one.items:,} items"
        rows += [
            _row(
                f"search over HTTP, unrecorded, p50, {at}",
                (one.p50("node"), one.p50("engine"), "ms"),
                "<= 1.7",
                f"bare: one hybrid query of Qdrant Edge; p95 {percentile(one.taken['node'], 95):.1f} ms, "
                f"bare {percentile(one.taken['engine'], 95):.1f}; HTTP floor {one.p50('floor'):.2f}, "
                f"behind a minimal server {one.p50('minimal'):.2f} ms; "
                f"/health {one.p50('health'):.1f}, listing 20 {one.p50('list'):.1f} ms; "
                f"vector process {one.resident:,.0f} MB; imported in {one.import_seconds:.0f} s, "
                f"vectors {one.vectors_after:.0f} s later",
            ),
            _row(
                f"{CLIENTS} clients search unrecorded, {at}",
                (node, minimal, "answers/s"),
                ">= 0.6",
                "bare: the engine behind a minimal HTTP server",
            ),
        ]
    for less, more in pairwise(sizes):
        rows.append(
            _row(
                f"search over HTTP, unrecorded, p50, {more.items:,} items beside {less.items:,}",
                (more.p50("node"), less.p50("node"), "ms"),
                "<= 3",
                f"the bare engine: {more.p50('engine') / less.p50('engine'):.1f} times",
            )
        )
    return rows


def _row(row: str, figures: tuple[float, float, str], target: str, note: str) -> dict[str, Any]:
    ours, raw, unit = figures
    return {"row": row, "ours": ours, "raw": raw, "unit": unit, "ratio": ours / raw, "target": target, "note": note}


def run(sizes: Sequence[int] = SIZES) -> list[dict[str, Any]]:
    """The rows of this benchmark; one that says why when the corpus is not there."""
    data = data_directory()
    if not (data / "tldr" / "queries.jsonl").exists():
        return [absent("growth of a search")]
    return _rows([uvloop.run(measure(data, items)) for items in sizes])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.growth", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, nargs="+", default=list(SIZES), help="the sizes, smallest first")
    parser.add_argument("--million", action="store_true", help="1,000,000 items as well: an hour and 10 GB")
    options = parser.parse_args()
    for line in run([*options.items, *([MILLION] if options.million else [])]):
        print(line)

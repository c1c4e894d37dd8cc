"""Recording benchmark: what it costs a search over HTTP that its recall is recorded, for one client and for eight.

A real node holds a real corpus (`../shared/data` beside the project, or KLEDGER_BENCH_DATA; made items without it). A
person searches, in turns with and without `record=false`, so that both meet the same machine. Whoever is named is a
person: the query is sealed in the recall. Every recall has to be in the log afterwards, or there are no rows.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import orjson
import uvloop

from bench.corpus import payloads
from bench.recall import data_directory
from bench.search import Ask, head_of, imported, over_http, searchable, start_import, timed
from bench.visible import HttpClient, percentile, running_node

ROUNDS = 6
QUERIES = 200
WARM_UP = 60
CLIENTS = 8
MADE = 5_000
ARRIVES_WITHIN = 30.0

Taken = Mapping[str, Sequence[float]]


def corpus_and_queries(directory: Path) -> tuple[Path, list[str]]:
    """A file of items to import, and queries that find some of them."""
    data = data_directory()
    if (data / "tldr" / "queries.jsonl").exists():
        lines = (data / "tldr" / "queries.jsonl").read_bytes().splitlines()
        return data / "tldr" / "knowledge.jsonl", [str(orjson.loads(line)["query"]) for line in lines]
    items = list(payloads(MADE))
    file = directory / "items.jsonl"
    file.write_bytes(b"".join(orjson.dumps(item) + b"\n" for item in items))
    return file, [str(item["task"]) for item in items[:QUERIES]]


async def measure(rounds: int) -> list[dict[str, Any]]:
    """Search recorded and unrecorded, in turns. Returns the rows."""
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kledger-bench-")))
        corpus, queries = corpus_and_queries(directory)
        (directory / "node").mkdir()
        node = await stack.enter_async_context(running_node(directory / "node"))
        http = HttpClient(node.http)
        stack.callback(http.close)
        await searchable(http, (await imported(await start_import(corpus, node.http)))["position"])
        person = HttpClient(node.http, user="mei")
        stack.callback(person.close)
        ways = {"recorded": over_http(person), "unrecorded": over_http(person, record=False)}
        endless = cycle(queries)
        for ask in ways.values():
            await timed(ask, list(islice(endless, WARM_UP)))
        alone: dict[str, list[float]] = {way: [] for way in ways}
        together: dict[str, list[float]] = {way: [] for way in ways}
        rates: dict[str, list[float]] = {way: [] for way in ways}
        began = await head_of(http)
        for _ in range(rounds):
            for way, ask in ways.items():
                alone[way] += await timed(ask, list(islice(endless, QUERIES)))
        for _ in range(rounds):
            for way, ask in ways.items():
                taken, rate = await _by_many(ask, list(islice(endless, QUERIES)))
                together[way] += taken
                rates[way].append(rate)
        await _all_arrived(http, began + 2 * rounds * QUERIES)
    return [*_rows("one client", alone), *_rows(f"{CLIENTS} clients", together), _rate_row(rates)]


async def _by_many(ask: Ask, queries: Sequence[str]) -> tuple[list[float], float]:
    """Milliseconds of each query of CLIENTS clients, each one after another; and queries a second."""
    began = time.perf_counter()
    parts = await asyncio.gather(*(timed(ask, queries[at::CLIENTS]) for at in range(CLIENTS)))
    return [each for part in parts for each in part], len(queries) / (time.perf_counter() - began)


async def _all_arrived(http: HttpClient, position: int) -> None:
    """Wait until the log has every recall. Raises TimeoutError where one is missing."""
    async with asyncio.timeout(ARRIVES_WITHIN):
        while await head_of(http) < position:
            await asyncio.sleep(0.05)


def _rows(clients: str, taken: Taken) -> list[dict[str, Any]]:
    rows = []
    for percent, target in ((50, "<= 1.15"), (95, "<= 1.3")):
        ours, raw = (percentile(taken[way], percent) for way in ("recorded", "unrecorded"))
        rows.append(
            {
                "row": f"search that is recorded, {clients}, p{percent}",
                "ours": ours,
                "raw": raw,
                "unit": "ms",
                "ratio": ours / raw,
                "target": target,
                "note": f"beside one that is not, in turns, by a person over HTTP; {len(taken['recorded'])} each",
            }
        )
    return rows


def _rate_row(rates: Taken) -> dict[str, Any]:
    ours, raw = (statistics.median(rates[way]) for way in ("recorded", "unrecorded"))
    return {
        "row": f"searches that are recorded, {CLIENTS} clients",
        "ours": ours,
        "raw": raw,
        "unit": "searches/s",
        "ratio": ours / raw,
        "target": None,
        "note": "beside ones that are not; client and node share the machine",
    }


def run() -> list[dict[str, Any]]:
    """The rows of this benchmark."""
    return uvloop.run(measure(ROUNDS))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.recorded", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    for line in uvloop.run(measure(parser.parse_args().rounds)):
        print(line)

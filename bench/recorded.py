"""Recording benchmark: what it costs a search over HTTP that its recall is recorded, for one client and for eight.

A real node holds a real corpus (`../shared/data` beside the project, or KLEDGER_BENCH_DATA; made items without it). A
person searches, in turns with and without `record=false`, so that both meet the same machine; what a person asks is
sealed in the recall. Who begins alternates, as a node's first searches are its slowest. Recalls are folded some time
after their answers: a turn lasts longer than they wait, and the next one begins when all are folded, so that each turn
pays for its own. The processor time of the node's processes has all.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson
import uvloop

from bench.corpus import payloads
from bench.recall import data_directory
from bench.search import Ask, head_of, imported, over_http, searchable, start_import, timed
from bench.visible import HttpClient, percentile, running_node

ROUNDS = 4
QUERIES, QUERIES_OF_MANY = 1_500, 3_000
WARM_UP = 600
CLIENTS = 8
MADE = 5_000
TICKS = os.sysconf("SC_CLK_TCK")

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
        used: dict[str, list[float]] = {way: [] for way in ways}
        orders = [list(ways.items()), list(ways.items())[::-1]]
        for number in range(rounds):
            for way, ask in orders[number % 2]:
                before = processor_time(node.pid)
                head = await _folded(http)
                alone[way] += await timed(ask, list(islice(endless, QUERIES)))
                await _folded(http, head + (QUERIES if way == "recorded" else 0))
                used[way].append((processor_time(node.pid) - before) * 1_000 / QUERIES)
        for number in range(rounds):
            for way, ask in orders[number % 2]:
                head = await _folded(http)
                taken, rate = await _by_many(ask, list(islice(endless, QUERIES_OF_MANY)))
                together[way] += taken
                rates[way].append(rate)
                await _folded(http, head + (QUERIES_OF_MANY if way == "recorded" else 0))
    return [*_rows("one client", alone), *_rows(f"{CLIENTS} clients", together), *_cost_rows(rates, used)]


def processor_time(pid: int) -> float:
    """Seconds of processor time of a process and its children since they began; 0 where there is no /proc."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS + sum(processor_time(int(child)) for child in children)


async def _by_many(ask: Ask, queries: Sequence[str]) -> tuple[list[float], float]:
    """Milliseconds of each query of CLIENTS clients, each one after another; and queries a second."""
    began = time.perf_counter()
    parts = await asyncio.gather(*(timed(ask, queries[at::CLIENTS]) for at in range(CLIENTS)))
    return [each for part in parts for each in part], len(queries) / (time.perf_counter() - began)


async def _folded(http: HttpClient, least: int = 0) -> int:
    """Wait until the view has all of the log, with every recall; returns where that is. Raises RuntimeError."""
    await http.ask("GET", "/api/recalls?limit=1")  # a read of recalls waits for those that are not appended yet
    if (head := await head_of(http)) < least:
        raise RuntimeError(f"recalls are missing: the log ends at {head}, not at {least}")
    await http.ask("GET", f"/api/recalls?{urlencode({'limit': 1, 'min_position': head})}")
    return head


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


def _cost_rows(rates: Taken, used: Taken) -> list[dict[str, Any]]:
    rows = []
    for row, measured, unit, note in (
        (f"searches that are recorded, {CLIENTS} clients", rates, "searches/s", "client and node share the machine"),
        ("search that is recorded, processor time", used, "ms", "of all its processes, folds included; one client"),
    ):
        ours, raw = (statistics.median(measured[way]) for way in ("recorded", "unrecorded"))
        ratio = ours / raw if raw else None
        rows.append(
            {
                "row": row,
                "ours": ours,
                "raw": raw,
                "unit": unit,
                "ratio": ratio,
                "target": None,
                "note": f"beside one that is not; {note}",
            }
        )
    return rows


def run() -> list[dict[str, Any]]:
    """The rows of this benchmark."""
    return uvloop.run(measure(ROUNDS))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.recorded", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    for line in uvloop.run(measure(parser.parse_args().rounds)):
        print(line)

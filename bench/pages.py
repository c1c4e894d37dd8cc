"""Pages benchmark: how long a node takes for each page for people, and what ten people who look cost the agents.

A real node holds the tldr corpus (`../shared/data` beside the project, or KLEDGER_BENCH_DATA) and 5,000 recalls of it;
with `--items 100000` made-up items beside it. Each page is opened over a kept-alive connection and timed at the client,
until its last byte. Then an agent searches, in turns alone and while ten people follow what happens live and open a
page every five seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from itertools import cycle, islice
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

import httpx
import orjson
import uvloop

from bench.corpus import payloads
from bench.recall import data_directory
from bench.visible import Node, percentile, running_node
from kledger import AsyncLedgerClient
from ledger.event import Lineage, NewEvent
from ledger.events.recall import RecallServed, ServedItem
from ledger.store.jetstream import JetStreamLedger

RECALLS = 5_000
SERVED = 5
TRACES = 200
OPENED = 40
WARM_UP = 5
FOLLOWERS = 10
CLICK_SECONDS = 5.0
SEARCHES = 200
ROUNDS = 5
MOST_MS, MOST_MS_AT_100K = 60, 150
BATCH = 1_000

Row = dict[str, Any]


async def measure(items: int = 0) -> list[Row]:
    """The rows, on a node with at least so many items."""
    with tempfile.TemporaryDirectory(prefix="kledger-bench-") as directory:
        async with running_node(Path(directory), KLEDGER_LIMIT_RATE="0") as node:
            ids, queries = await _filled(node, items)
            rows = await _pages(node, ids, queries, len(ids))
            return [*rows, *await _beside_agents(node, ids, queries)]


async def _filled(node: Node, most: int) -> tuple[list[str], list[str]]:
    """Save the corpus and its recalls; ids of the items, and queries."""
    corpus = data_directory() / "tldr"
    lines = (corpus / "knowledge.jsonl").read_bytes().splitlines()
    items = [orjson.loads(line) for line in lines]
    items += list(payloads(max(0, most - len(items))))
    queries = [orjson.loads(line)["query"] for line in (corpus / "queries.jsonl").read_bytes().splitlines()]
    async with AsyncLedgerClient(f"http://{node.http}", timeout=600) as client:
        await client.save_many(items)
        ids = [each["id"] for each in items]
        ledger = await JetStreamLedger.connect(node.broker, role="node", name="kledger-bench")
        try:
            events = list(_recalls(ids, queries))
            for start in range(0, len(events), BATCH):
                last = await ledger.append_many(events[start : start + BATCH])
        finally:
            await ledger.close()
        await client.seeing(last[-1].position, wait=60).search(queries[0], record=False)
    return ids, queries


def _recalls(ids: Sequence[str], queries: Sequence[str]) -> Sequence[NewEvent]:
    random = Random(7)
    made = []
    for number in range(RECALLS):
        served = random.sample(ids[:8_000], SERVED)
        fact = RecallServed(
            query=random.choice(queries),
            visible_scopes=["agent:bench", "public"],
            items=[ServedItem(id=each, version=1, relevance=1 - rank / 10) for rank, each in enumerate(served)],
            view_position=1,
        )
        lineage = Lineage(trace_id=f"trace-{number % TRACES}")
        made.append(NewEvent(fact, f"recall-{number}", "agent:bench", lineage=lineage))
    return made


async def _signed_in(node: Node) -> httpx.AsyncClient:
    http = httpx.AsyncClient(base_url=f"http://{node.http}", timeout=60, headers={"Accept": "text/html"})
    form = await http.get("/ui/sign-in")
    csrf = re.search(r'name="csrf" value="([^"]+)"', form.text)
    assert csrf is not None  # the form has it
    await http.post("/ui/sign-in", data={"csrf": csrf[1], "as": "operator"}, follow_redirects=True)
    return http


def _addresses(ids: Sequence[str], queries: Sequence[str]) -> dict[str, list[str]]:
    return {
        "overview": ["/ui"],
        "knowledge": ["/ui/knowledge", "/ui/knowledge?view=table", "/ui/knowledge?types=tool&sort=helpful"],
        "search": [f"/ui/knowledge?q={quote(each)}" for each in queries[:OPENED]],
        "item": [f"/ui/items/{quote(each, safe='')}" for each in ids[:OPENED]],
        "traces": ["/ui/traces"],
        "trace": [f"/ui/traces/trace-{number}" for number in range(OPENED)],
        "recall": [f"/ui/recalls/recall-{number}" for number in range(OPENED)],
        "sessions": ["/ui/sessions"],
        "review": [f"/ui/review?tab={tab}" for tab in ("conflicts", "proposals", "approvals", "held", "refused")],
        "why": [f"/ui/why?q={quote(each)}" for each in queries[:OPENED]],
        "audit": ["/ui/audit"],
        "sql": ["/ui/sql"],
    }


async def _pages(node: Node, ids: Sequence[str], queries: Sequence[str], count: int) -> list[Row]:
    target = MOST_MS if count < 50_000 else MOST_MS_AT_100K
    http = await _signed_in(node)
    rows: list[Row] = []
    for name, addresses in _addresses(ids, queries).items():
        taken = []
        for address in islice(cycle(addresses), OPENED + WARM_UP):
            began = time.perf_counter()
            answer = await http.get(address)
            taken.append((time.perf_counter() - began) * 1000)
            if answer.status_code != 200:
                raise RuntimeError(f"{address} was answered {answer.status_code}: {answer.text[:500]}")
        taken = taken[WARM_UP:]
        rows.append(
            {
                "row": f"page {name}, {count:,} items",
                "ours": percentile(taken, 95),
                "raw": None,
                "unit": "ms p95",
                "ratio": None,
                "target": f"≤ {target} ms",
                "note": f"p50 {statistics.median(taken):.1f} ms, {len(answer.content) / 1024:.0f} KB",
            }
        )
    await http.aclose()
    return rows


async def _beside_agents(node: Node, ids: Sequence[str], queries: Sequence[str]) -> list[Row]:
    """An agent's searches, alone and while people look, in turns."""
    alone, beside = [], []
    async with AsyncLedgerClient(f"http://{node.http}") as client:
        agent = client.acting_as(agent="bench")

        async def searches() -> float:
            taken = []
            for query in islice(cycle(queries), SEARCHES):
                began = time.perf_counter()
                await agent.search(query, record=False)
                taken.append((time.perf_counter() - began) * 1000)
            return statistics.median(taken)

        await searches()
        for _ in range(ROUNDS):
            alone.append(await searches())
            async with AsyncExitStack() as stack:
                for number in range(FOLLOWERS):
                    stack.push_async_callback(await _looking(node, ids, number))
                await asyncio.sleep(1)
                beside.append(await searches())
    ours, raw = statistics.median(beside), statistics.median(alone)
    row = {
        "row": f"an agent's search while {FOLLOWERS} people look",
        "ours": ours,
        "raw": raw,
        "unit": "ms p50",
        "ratio": ours / raw,
        "target": "≤ 1.10",
        "note": f"{ROUNDS} rounds in turns; raw: the same search alone",
    }
    return [row]


async def _looking(node: Node, ids: Sequence[str], number: int) -> Callable[[], Awaitable[None]]:
    """Somebody who follows what happens and opens a page now and then; returns how to end it."""
    http = await _signed_in(node)

    async def follow() -> None:
        async with http.stream("GET", "/ui/live", timeout=None) as stream:
            async for _ in stream.aiter_bytes():
                pass

    async def click() -> None:
        await asyncio.sleep(CLICK_SECONDS * number / FOLLOWERS)
        for item in cycle(ids[number:1_000:FOLLOWERS]):
            await http.get(f"/ui/items/{quote(item, safe='')}")
            await asyncio.sleep(CLICK_SECONDS)

    tasks = [asyncio.create_task(follow()), asyncio.create_task(click())]

    async def end() -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await http.aclose()

    return end


def run() -> list[Row]:
    """The rows, for the benchmark runner."""
    return uvloop.run(measure())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--items", type=int, default=0, help="at least so many items")
    for row in uvloop.run(measure(parser.parse_args().items)):
        print(row["row"], f"{row['ours']:.1f} {row['unit']}", row["ratio"] and f"{row['ratio']:.2f}", row["note"])

"""Search benchmark: latency over HTTP, beside the bare engine's hybrid query, and while an import runs.

A real node holds a real corpus (`../shared/data` beside the project, or KLEDGER_BENCH_DATA), and one client sends
the corpus's own queries over a kept-alive connection. The bare side is Qdrant Edge in this process: the same
sparse and dense vectors, the same filter, both prefetched and fused by the engine in one query, with prepared query
vectors. Then the same load again, by an agent, while `kledger import` imports more items in a process of its own: over
its whole run, which ends when the items are searchable, and only in the seconds in which it sends them. Whoever imports
waits in a search for what it has just written (read your own writes), so one search of the importer's is timed as well.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from itertools import cycle, islice
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import orjson
import qdrant_edge as edge
import uvloop

from bench.corpus import payloads
from bench.recall import data_directory
from bench.visible import KLEDGER, ROOT, HttpClient, environment, percentile, running_node
from kledger.contract.scopes import Caller
from projections.search.asked import LEAST_CANDIDATES
from projections.vectors.embedding.hashed import DIMENSIONS, hashed_vectors
from projections.vectors.tokens import Sparse, document_terms, query_terms

IMPORTED = 9_000
ROUNDS = 5
QUERIES = 120
WARM_UP = 50
BARE_BATCH = 256
STATUS_EVERY = 10
SETTLE_SECONDS = 60  # the most that a read may wait
CATCH_UP_SECONDS = 300

Ask = Callable[[str], Awaitable[object]]


class BareEngine:
    """Plain Qdrant Edge: two named vectors, a keyword index, one hybrid query."""

    def __init__(self, folder: Path, items: Sequence[Mapping[str, Any]], queries: Sequence[str]) -> None:
        folder.mkdir()
        config = edge.EdgeConfig(
            vectors={"dense": edge.EdgeVectorParams(size=DIMENSIONS, distance=edge.Distance.Cosine)},
            sparse_vectors={"terms": edge.EdgeSparseVectorParams(modifier=edge.Modifier.Idf)},
        )
        self._shard = edge.EdgeShard.create(str(folder), config)
        self._shard.update(edge.UpdateOperation.create_field_index("scopes", edge.PayloadSchemaType.Keyword))
        for at in range(0, len(items), BARE_BATCH):
            part = items[at : at + BARE_BATCH]
            dense = hashed_vectors([f"{item['task']}\n{item['content']}" for item in part])
            self._shard.update(
                edge.UpdateOperation.upsert_points(
                    [
                        edge.Point(
                            id=str(uuid.uuid5(uuid.NAMESPACE_OID, item["id"])),
                            vector={
                                "dense": vector.tolist(),
                                "terms": _sparse(document_terms(item["task"], item["content"])),
                            },
                            payload={"item_id": item["id"], "scopes": item["scopes"]},
                        )
                        for item, vector in zip(part, dense, strict=True)
                    ]
                )
            )
        self._requests = {query: _hybrid(query) for query in queries}

    async def ask(self, query: str) -> None:
        """One hybrid query, whose answer has the ids."""
        self.hits(query)

    def hits(self, query: str) -> list[edge.ScoredPoint]:
        """What one hybrid query finds."""
        return self._shard.query(self._requests[query])

    def optimize(self) -> None:
        """Build the indexes that make search fast."""
        self._shard.optimize()

    def close(self) -> None:
        self._shard.close()


def _sparse(terms: Sparse) -> edge.SparseVector:
    return edge.SparseVector(terms.indices.tolist(), terms.values.tolist())


def _hybrid(query: str) -> edge.QueryRequest:
    visible = edge.FieldCondition("scopes", match=edge.MatchAny(list(Caller().visible_scopes())))
    admitted = edge.Filter(must=[visible])
    dense = edge.Query.Nearest(hashed_vectors([query])[0].tolist(), using="dense")
    terms = edge.Query.Nearest(_sparse(query_terms(query)), using="terms")
    return edge.QueryRequest(
        LEAST_CANDIDATES,
        query=edge.Fusion.Rrf(k=60),  # type: ignore[arg-type]  # its stub does not say that it is a Fusion
        prefetches=[
            edge.Prefetch(LEAST_CANDIDATES, query=terms, filter=admitted),
            edge.Prefetch(LEAST_CANDIDATES, query=dense, filter=admitted),
        ],
        with_payload=edge.PayloadSelector.Include(["item_id"]),
    )


def over_http(http: HttpClient, *, record: bool = True) -> Ask:
    """A search over HTTP, as any client does it; recalls are recorded by default."""

    async def ask(query: str) -> None:
        parameters = {"q": query} if record else {"q": query, "record": "false"}
        answer = await http.ask("GET", f"/api/knowledge/search?{urlencode(parameters)}")
        if not answer["results"]:
            raise RuntimeError(f"the node found nothing for {query!r}")

    return ask


async def timed(ask: Ask, queries: Sequence[str]) -> list[float]:
    """Milliseconds of each query, one after another."""
    taken = []
    for query in queries:
        began = time.perf_counter()
        await ask(query)
        taken.append((time.perf_counter() - began) * 1_000)
    return taken


async def timed_until(over: Callable[[], Awaitable[bool]], ask: Ask, queries: Sequence[str]) -> list[float]:
    """Milliseconds of each query, one after another until `over()`, which is checked every few queries."""
    taken: list[float] = []
    endless = cycle(queries)
    while not await over():
        taken += await timed(ask, list(islice(endless, STATUS_EVERY)))
    return taken


async def start_import(file: Path, http: str) -> asyncio.subprocess.Process:
    """`kledger import FILE` in a process of its own."""
    return await asyncio.create_subprocess_exec(
        *(*KLEDGER, "import", str(file), "--json"),
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env=environment(KLEDGER_URL=f"http://{http}"),
    )


async def imported(process: asyncio.subprocess.Process) -> dict[str, Any]:
    """The result of the import. Raises RuntimeError when not every line was saved."""
    output, _ = await process.communicate()
    result: dict[str, Any] = orjson.loads(output)
    if process.returncode or result["saved"] != result["lines"]:
        raise RuntimeError(f"the import did not save every line: {result}")
    return result


async def searchable(http: HttpClient, position: int) -> None:
    """Wait until searches find everything up to this log position."""
    parameters = {"q": "anything", "record": "false", "min_position": position, "wait": SETTLE_SECONDS}
    await http.ask("GET", f"/api/knowledge/search?{urlencode(parameters)}")


async def vectors_at(http: HttpClient) -> int:
    """The log position up to which the vectors are searchable."""
    status = await http.ask("GET", "/api/admin/status")
    return int(next(view["position"] for view in status["views"] if view["name"] == "vectors"))


async def head_of(http: HttpClient) -> int:
    """The last log position."""
    return int((await http.ask("GET", "/api/admin/status"))["stream"]["head"])


async def measure(data: Path, count: int) -> list[dict[str, Any]]:
    """Search, then search while importing `count` items. Returns the rows."""
    corpus = data / "tldr" / "knowledge.jsonl"
    items = [orjson.loads(line) for line in corpus.read_bytes().splitlines()]
    lines = (data / "tldr" / "queries.jsonl").read_bytes().splitlines()
    queries = [str(orjson.loads(line)["query"]) for line in lines]
    async with AsyncExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="kledger-bench-")))
        more = directory / "more.jsonl"
        more.write_bytes(b"".join(orjson.dumps(payload) + b"\n" for payload in payloads(count)))
        engine = BareEngine(directory / "engine", items, queries)
        stack.callback(engine.close)

        (directory / "node").mkdir()
        node = await stack.enter_async_context(running_node(directory / "node"))
        http = HttpClient(node.http)
        stack.callback(http.close)
        first = await imported(await start_import(corpus, node.http))
        await searchable(http, first["position"])

        agent = HttpClient(node.http, agent="reader")
        stack.callback(agent.close)
        taken = await _in_turns(http, agent, engine, queries)
        importing = await start_import(more, node.http)
        reading = asyncio.create_task(imported(importing))

        taken["during"], taken["sending"], taken["own"] = await _beside(reading, http, agent, queries, count)
        second = await reading

        async def vectors_caught_up() -> bool:
            return await vectors_at(http) >= int(second["position"])

        async with asyncio.timeout(CATCH_UP_SECONDS):
            taken["after"] = await timed_until(vectors_caught_up, over_http(agent), queries)
    return [*_engine_rows(len(items), taken), *_import_rows(second, taken)]


async def _beside(
    importing: asyncio.Task[dict[str, Any]], http: HttpClient, agent: HttpClient, queries: Sequence[str], count: int
) -> tuple[list[float], list[float], list[float]]:
    """Milliseconds of each query of the agent while the import runs, of those while only a part of its items was
    stored, and of the importer's own, one after another."""
    during: list[float] = []
    sending: list[float] = []
    own: list[float] = []
    endless = cycle(queries)
    first = await head_of(http)

    async def importers() -> None:
        while not importing.done():
            own.extend(await timed(over_http(http, record=False), queries[:1]))

    beside = asyncio.create_task(importers())
    while not importing.done():
        stored = await head_of(http) - first - len(during)  # each search appends one event
        taken = await timed(over_http(agent), list(islice(endless, STATUS_EVERY)))
        during += taken
        if 0 < stored < count:
            sending += taken
    await beside
    return during, sending, own


async def _in_turns(
    http: HttpClient, agent: HttpClient, engine: BareEngine, queries: Sequence[str]
) -> dict[str, list[float]]:
    """The node and the engine as it is after the upserts, then the node and the engine with its indexes built."""
    ways: dict[str, Ask] = {
        "http": over_http(http),
        "unrecorded": over_http(http, record=False),
        "agent": over_http(agent),
        "bare": engine.ask,
        "bare optimized": engine.ask,
    }
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for way in ("http", "bare"):
        await timed(ways[way], queries[:WARM_UP])
    endless = cycle(queries)
    for way_of_engine in ("bare", "bare optimized"):
        if way_of_engine == "bare optimized":
            await asyncio.to_thread(engine.optimize)
        for _ in range(ROUNDS):
            batch = list(islice(endless, QUERIES))
            for way in ("http", "unrecorded", "agent", way_of_engine):
                taken[way] += await timed(ways[way], batch)
    return taken


def _engine_rows(items: int, taken: Mapping[str, list[float]]) -> list[dict[str, Any]]:
    ours = taken["http"]
    rows = []
    for row, way, target in (
        ("search over HTTP, p50", "bare", "<= 6"),
        # The node does not optimize its engine, so the target compares with the engine in that state.
        ("search over HTTP, p50, bare engine optimized", "bare optimized", None),
    ):
        mine, raw = statistics.median(ours), statistics.median(taken[way])
        rows.append(
            {
                "row": row,
                "ours": mine,
                "raw": raw,
                "unit": "ms",
                "ratio": mine / raw,
                "target": target,
                "note": f"bare: one hybrid query of Qdrant Edge; {items:,} items, {len(ours)} queries, one client; "
                f"p99 {percentile(ours, 99):.1f} ms, bare {percentile(taken[way], 99):.1f} ms; "
                f"p50 {statistics.median(taken['unrecorded']):.1f} ms without record",
            }
        )
    return rows


def _import_rows(result: Mapping[str, Any], taken: Mapping[str, list[float]]) -> list[dict[str, Any]]:
    before, after, rows = taken["agent"], taken["after"], list[dict[str, Any]]()
    for row, meanwhile in (("while an import runs", taken["during"]), ("while its items are sent", taken["sending"])):
        if len(meanwhile) < STATUS_EVERY:
            raise RuntimeError("the import ended before it could be searched beside: import more items")
        note = f"beside before; {result['saved']:,} items in {result['seconds']:.1f} s"
        note += f", {len(meanwhile)} queries meanwhile; "
        note += f"p99 {percentile(meanwhile, 99):.1f} ms, before {percentile(before, 99):.1f} ms"
        rows.append(
            {
                "row": f"search over HTTP {row}, p50",
                "ours": statistics.median(meanwhile),
                "raw": statistics.median(before),
                "unit": "ms",
                "ratio": statistics.median(meanwhile) / statistics.median(before),
                "target": "<= 2",
                "note": note,
            }
        )
    own = taken["own"]
    rows[0]["note"] += (
        f"; the importer's own searches, which wait for its writes: p50 {statistics.median(own):,.0f} ms, {len(own)}"
    )
    if len(after) >= STATUS_EVERY:
        rows[0]["note"] += (
            f"; while the vectors then caught up p50 {statistics.median(after):.1f} ms, "
            f"p99 {percentile(after, 99):.1f} ms, {len(after)} queries"
        )
    return rows


def absent(row: str) -> dict[str, Any]:
    """The row of a benchmark whose corpus is not there."""
    where = "the tldr corpus is not in ../shared/data beside the project: name its folder in KLEDGER_BENCH_DATA"
    return {"row": row, **dict.fromkeys(("ours", "raw", "unit", "ratio", "target")), "note": f"skipped: {where}"}


def run(items: int = IMPORTED) -> list[dict[str, Any]]:
    """The rows of this benchmark; one that says why when the corpus is not there."""
    data = data_directory()
    if not (data / "tldr" / "queries.jsonl").exists():
        return [absent("search over HTTP")]
    return uvloop.run(measure(data, items))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.search", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--items", type=int, default=IMPORTED, help="how many items are imported beside the searches")
    for line in run(parser.parse_args().items):
        print(line)

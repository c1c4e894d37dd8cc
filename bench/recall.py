"""Search quality by path. `python -m bench.recall [--url http://127.0.0.1:8420] [--json FILE]`.

Reads real corpora (`--data`, or KLEDGER_BENCH_DATA, else `../shared/data`), runs every query, and prints recall
at 5 and 10 and the mean reciprocal rank at 10 beside the floor: plain BM25. Without `--url` it measures the
engine in this process with default settings; with it a running node over HTTP, into which the corpora were
imported. Exit code 1 when a figure is more than 0.005 below its floor, or fused is not the best path.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import httpx
import numpy as np
import orjson
from numpy.typing import NDArray

from projections.search.match import Heard
from projections.search.ranking import Beside, Candidate, Fusion, fuse, lend
from projections.vectors.embedding.embeddings import HashedEmbedder
from projections.vectors.embedding.weights import HASHED_VECTOR_WEIGHT
from projections.vectors.question import Searched, embedded_of, terms_of
from projections.vectors.store.edge import EdgeStore
from projections.vectors.store.port import Found, Point, SearchOptions
from projections.vectors.tokens import document_terms

Search = Callable[[str], Sequence[str]]
"""Run one query; returns the ids found, best first, at least ten if there are as many."""

TOP_K = 10
CANDIDATES = 20
TOLERANCE = 0.005
PATHS = ("keyword", "vector", "fused")
FIGURES = ("R@5", "R@10", "MRR@10")


@dataclass(frozen=True, slots=True)
class Quality:
    """Recall at 5, recall at 10, mean reciprocal rank at 10, each between 0 and 1; and the number of queries."""

    r5: float
    r10: float
    mrr10: float
    queries: int

    def figures(self) -> tuple[float, float, float]:
        return self.r5, self.r10, self.mrr10


@dataclass(frozen=True, slots=True)
class Query:
    """A query, and the ids of the relevant items."""

    text: str
    relevant: frozenset[str]
    lang: str


@dataclass(frozen=True, slots=True)
class Row:
    """One row of the table: the queries, their corpus, and the minimum quality."""

    name: str
    corpus: str
    lang: str
    floor: tuple[float, float, float]


# The floor is plain BM25 over task and content: words, Chinese pairs, k1 1.2, b 0.75.
ROWS = (
    Row("tldr, en", "tldr", "en", (0.633, 0.687, 0.516)),
    Row("tldr, zh", "tldr", "zh", (0.710, 0.750, 0.583)),
    Row("cmrc-trial", "cmrc-trial", "zh", (0.885, 0.939, 0.769)),
)


def evaluate(search: Search, queries: Iterable[Query]) -> Quality:
    """Run every query and rank the first relevant item."""
    ranks = []
    for query in queries:
        results = list(search(query.text))[:TOP_K]
        ranks.append(next((n for n, item_id in enumerate(results, start=1) if item_id in query.relevant), None))
    if not ranks:
        raise ValueError("there is no query to ask")
    return Quality(
        r5=statistics.fmean(rank is not None and rank <= 5 for rank in ranks),
        r10=statistics.fmean(rank is not None for rank in ranks),
        mrr10=statistics.fmean(1 / rank if rank else 0.0 for rank in ranks),
        queries=len(ranks),
    )


def read_queries(data: Path, row: Row) -> list[Query]:
    """The queries of one row."""
    lines = (data / row.corpus / "queries.jsonl").read_bytes().splitlines()
    queries = (Query(q["query"], frozenset(q["relevant"]), q["lang"]) for q in map(orjson.loads, lines))
    return [query for query in queries if query.lang == row.lang]


class Embedding(Protocol):
    """What makes the vectors of an engine: hashed n-grams, or a model behind an endpoint."""

    model: str
    dimensions: int
    vector_weight: float

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A row for each text."""


class Engine:
    """Search over one corpus in this process: the store, the tokens and the fusion, without a node."""

    def __init__(self, folder: Path, items: Sequence[Mapping[str, Any]], embedder: Embedding | None = None) -> None:
        self._embedder: Embedding = embedder or HashedEmbedder()
        self._store = EdgeStore(folder, self._embedder.model, self._embedder.dimensions)
        for at in range(0, len(items), 256):
            part = items[at : at + 256]
            vectors = self._embedder.vectors([f"{item['task']}\n{item['content']}" for item in part])
            self._store.upsert(
                [
                    Point(
                        item_id=item["id"],
                        version=1,
                        position=at + n,
                        scopes=item["scopes"],
                        types=item["types"],
                        owner=item["owner"],
                        dense=vector,
                        sparse=document_terms(item["task"], item["content"]),
                    )
                    for n, (item, vector) in enumerate(zip(part, vectors, strict=True), start=1)
                ]
            )

    def by(self, path: str, scope: str = "public", beside: Beside | None = None) -> Search:
        """A search in one scope by one path, by all ("fused"), or by all with ranks instead of scores ("rrf").

        `beside` are the items beside each item, which get a part of its relevance.
        """
        return lambda query: self.ordered(self.found(query, path, scope), path, beside)

    def found(self, query: str, path: str = "fused", scope: str = "public") -> Sequence[Found]:
        """What the paths find in one scope, with the score of each path."""
        words_only = path == "keyword"
        searched = Heard(query).searched
        return self._store.search(
            SearchOptions([scope], limit=CANDIDATES),
            dense=None if words_only else self._vector(searched),
            sparse=None if path == "vector" else terms_of(searched, words_only=words_only),
        )

    def _vector(self, searched: Searched) -> NDArray[np.float32]:
        if isinstance(self._embedder, HashedEmbedder):
            return self._embedder.query(searched)
        return np.asarray(self._embedder.vectors([embedded_of(searched)])[0], np.float32)

    def ordered(self, results: Sequence[Found], path: str = "fused", beside: Beside | None = None) -> list[str]:
        """The ids of what was found, fused, best first."""
        return ranked(results, "rrf" if path == "rrf" else "scores", self._embedder.vector_weight, beside or {})

    @property
    def meaning(self) -> bool:
        """Whether the vectors are those of a model, not of words."""
        return self._embedder.vector_weight > HASHED_VECTOR_WEIGHT

    def close(self) -> None:
        self._store.close()


def ranked(results: Sequence[Found], fusion: Fusion, vector_weight: float, beside: Beside) -> list[str]:
    """The ids of the results after fusion, best first, with what stands beside them."""
    candidates = [Candidate(f.item_id, f.valid_from, keyword=f.keyword, vector=f.vector) for f in results]
    found = {each.item_id for each in candidates}
    around_of: dict[str, list[str]] = {}
    for item_id, hits in beside.items():
        for hit, _ in hits:
            around_of.setdefault(hit, []).append(item_id)
    around = {other for each in candidates for other in around_of.get(each.item_id, ())} - found
    candidates += [Candidate(item_id, 0) for item_id in sorted(around)]
    fused = fuse(candidates, fusion=fusion, vector_weight=vector_weight)
    return [each.candidate.item_id for each in lend(fused, beside)]


def over_http(client: httpx.Client, path: str, corpus: str) -> Search:
    """A search of a running node by one path; results of other corpora are dropped."""
    prefix = "tldr-" if corpus == "tldr" else "cmrc-"

    def search(query: str) -> list[str]:
        # both corpora may be in one node: request more results, and filter by the row's corpus
        parameters: dict[str, str | int] = {"q": query, "top_k": 4 * TOP_K, "paths": path}
        answer = client.get("/api/knowledge/search", params=parameters)
        if answer.status_code == 422:
            return []  # the corpora have an empty query, which a node refuses: no results
        answer.raise_for_status()
        return [row["id"] for row in answer.json()["results"] if row["id"].startswith(prefix)]

    return search


def measure_engine(data: Path) -> dict[str, dict[str, Quality]]:
    """Every row by every path, in this process."""
    table: dict[str, dict[str, Quality]] = {}
    for corpus in dict.fromkeys(row.corpus for row in ROWS):
        lines = (data / corpus / "knowledge.jsonl").read_bytes().splitlines()
        items = [orjson.loads(line) for line in lines]
        with tempfile.TemporaryDirectory() as folder:
            engine = Engine(Path(folder), items)
            for row in (row for row in ROWS if row.corpus == corpus):
                queries = read_queries(data, row)
                table[row.name] = {path: evaluate(engine.by(path), queries) for path in (*PATHS, "rrf")}
            engine.close()
    return table


def measure_node(data: Path, url: str) -> dict[str, dict[str, Quality]]:
    """Every row by every path, over HTTP."""
    with httpx.Client(base_url=url, timeout=30) as client:
        return {
            row.name: {path: evaluate(over_http(client, path, row.corpus), read_queries(data, row)) for path in PATHS}
            for row in ROWS
        }


def faults(table: Mapping[str, Mapping[str, Quality]]) -> list[str]:
    """All violations of the quality criteria, each in a sentence."""
    violations = []
    above = 0
    for row in ROWS:
        paths = table[row.name]
        for name, floor, *figures in zip(FIGURES, row.floor, *(paths[path].figures() for path in PATHS), strict=True):
            keyword, vector, fused = figures
            above += fused > floor
            if fused < floor - TOLERANCE:
                violations.append(
                    f"{row.name}: {name} is {fused:.3f}, more than {TOLERANCE} below its floor {floor:.3f}"
                )
            if fused < max(keyword, vector):
                violations.append(
                    f"{row.name}: {name} fused is {fused:.3f}, and a single path has {max(keyword, vector):.3f}"
                )
    if above < 6:
        violations.append(f"only {above} of nine figures are above their floor; six are wanted")
    return violations


def print_table(table: Mapping[str, Mapping[str, Quality]]) -> None:
    """One line for each row and path: R@5, R@10, MRR@10."""
    print(f"{'corpus':<12} {'path':<10} {'R@5':>6} {'R@10':>6} {'MRR@10':>7}")
    for row in ROWS:
        print(f"{row.name:<12} {'floor':<10} {row.floor[0]:6.3f} {row.floor[1]:6.3f} {row.floor[2]:7.3f}")
        for path, quality in table[row.name].items():
            r5, r10, mrr10 = quality.figures()
            note = "  (for information)" if path == "rrf" else ""
            print(f"{'':<12} {path:<10} {r5:6.3f} {r10:6.3f} {mrr10:7.3f}{note}")


def data_directory() -> Path:
    """The default directory of the corpora."""
    beside = Path(__file__).parents[2] / "shared" / "data"
    return Path(os.environ.get("KLEDGER_BENCH_DATA", beside))


def run() -> list[dict[str, Any]]:
    """The rows of `python -m bench`: each figure of the fused path beside its floor; none without the corpora."""
    data = data_directory()
    if not (data / "tldr" / "queries.jsonl").exists():
        return []
    table = measure_engine(data)
    return [
        {
            "row": f"recall, {row.name}: {name}",
            "ours": figure,
            "raw": floor,
            "unit": "",
            "ratio": figure / floor,
            "target": ">= 0.99",
            "note": f"bare: BM25; {table[row.name]['fused'].queries} queries",
        }
        for row in ROWS
        for name, floor, figure in zip(FIGURES, row.floor, table[row.name]["fused"].figures(), strict=True)
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write; returns the exit code."""
    parser = argparse.ArgumentParser(description="Search quality by path, beside plain BM25")
    parser.add_argument("--url", help="measure a running node instead of the engine in this process")
    parser.add_argument("--data", type=Path, default=data_directory())
    parser.add_argument("--json", type=Path, help="where to write the table")
    options = parser.parse_args(arguments)
    if not (options.data / "tldr" / "queries.jsonl").exists():
        print(f"no corpora in {options.data}: say where they are with --data; nothing measured", file=sys.stderr)
        return 0
    began = time.perf_counter()
    table = measure_node(options.data, options.url) if options.url else measure_engine(options.data)
    print_table(table)
    wrong = faults(table)
    print("\n".join(wrong) or "every figure holds its floor, and fused is the best path on every row")
    if options.json:
        document = {
            "measured": options.url or "engine",
            "seconds": round(time.perf_counter() - began, 1),
            "floor": {row.name: row.floor for row in ROWS},
            "paths": {name: {path: asdict(q) for path, q in paths.items()} for name, paths in table.items()},
            "faults": wrong,
        }
        options.json.write_bytes(orjson.dumps(document, option=orjson.OPT_INDENT_2))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())

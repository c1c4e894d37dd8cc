"""No model makes a recall worse: `python -m bench.heard`. A reranker and questions in other words, good and hostile.

The rows of bench/recall.py, ranked by all paths in this process, with a reranker of each kind (tests/rerank_endpoint.py
has them as an endpoint): its scores go through the control texts and the bounded factor that a node uses. Then the same
rows as a recall shows them, results at or above the floor of `match` alone, with further queries of each kind where the
first answer is weak (nothing reaches the floor); and how many questions that nothing answers stay so. Exit code 1 when
a figure is below the one without. A reranker that counts words alone knows less than the ranking does, and stays with
the question all the same: its rows are for information.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from bench.recall import CANDIDATES, FIGURES, ROWS, Engine, Quality, Query, Row, data_directory, evaluate, read_queries
from bench.unanswered import questions
from consumers.recall.scores import calibrated, with_controls
from kledger.contract.recall import MOST_FLOOR
from projections.search.asked_differently import Hit, joined, stays_with
from projections.search.match import Passages, covered, passages, weighed
from projections.search.model_rerank import Place, reranked
from projections.search.ranking import Candidate, Relevant, fuse
from projections.vectors.store.port import SearchOptions
from projections.vectors.tokens import query_terms
from tests.rerank_endpoint import (
    Scorer,
    all_on_the_worst,
    at_random,
    by_place,
    by_shared_words,
    constant,
    reversed_order,
)

Further = Callable[[Query], Sequence[str]]
"""What a model writes of a question."""

MEDIOCRE = "by shared words"
RERANKERS: Mapping[str, Scorer] = {
    MEDIOCRE: by_shared_words,
    "constant": constant,
    "by place": by_place,
    "random": at_random,
    "reversed": reversed_order,
    "all on the worst": all_on_the_worst,
}


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus in an engine, with the text and the terms of each item."""

    engine: Engine
    texts: Mapping[str, str]
    terms: Mapping[str, Passages]

    def found(self, query: str) -> list[Relevant]:
        """The candidates of a query, fused, best first."""
        engine = self.engine
        results = engine._store.search(
            SearchOptions(["public"], limit=CANDIDATES),
            dense=engine._embedder.vectors([query])[0],
            sparse=query_terms(query),
        )
        candidates = [Candidate(f.item_id, f.valid_from, keyword=f.keyword, vector=f.vector) for f in results]
        return fuse(candidates, vector_weight=engine._embedder.vector_weight)

    def hits(self, query: str) -> list[Hit[None]]:
        """The same with their match."""
        wanted = weighed(query)
        return [
            Hit(each.candidate.item_id, covered(wanted, self.terms[each.candidate.item_id]), None)
            for each in self.found(query)
        ]


def corpus_of(engine: Engine, items: Sequence[Mapping[str, Any]]) -> Corpus:
    """The corpus of items that are in an engine."""
    return Corpus(
        engine,
        {item["id"]: f"{item['task']}\n{item['content']}" for item in items},
        {item["id"]: passages(item["task"], item["content"]) for item in items},
    )


def with_reranker(corpus: Corpus, queries: Sequence[Query], scorer: Scorer | None) -> Quality:
    """The quality of the rows after reranking; `None` without."""

    def search(text: str) -> list[str]:
        found = corpus.found(text)
        asked = [corpus.texts[each.candidate.item_id] for each in found][:20]
        scores = None
        if scorer is not None and len(asked) > 1:
            scores = calibrated(scorer(text, with_controls(text, asked)), len(asked))
        wanted = weighed(text)
        places = [Place(each.relevance, covered(wanted, corpus.terms[each.candidate.item_id])) for each in found]
        return [found[at].candidate.item_id for at in reranked(places, scores, MOST_FLOOR)]

    return evaluate(search, queries)


def good_at(corpus: Corpus, queries: Sequence[Query]) -> Scorer:
    """A reranker that knows the answers of four queries in five, and else goes by shared words."""
    answers = {query.text: {corpus.texts[name] for name in query.relevant if name in corpus.texts} for query in queries}
    known = {text for at, text in enumerate(answers) if at % 5}

    def score(query: str, texts: Sequence[str]) -> list[float]:
        shared = by_shared_words(query, texts)
        right = answers[query] if query in known else set()
        return [1.0 if text in right else share for text, share in zip(texts, shared, strict=True)]

    return score


def with_further(corpus: Corpus, queries: Sequence[Query], further: Further | None) -> Quality:
    """The quality of what a recall shows, with further queries where the first answer is weak; `None` without."""
    by_text = {query.text: query for query in queries}

    def search(text: str) -> list[str]:
        first = corpus.hits(text)
        if further is not None and all(hit.match < MOST_FLOOR for hit in first):
            first = joined(first, [corpus.hits(each) for each in further(by_text[text])], MOST_FLOOR)
        return [hit.id for hit in first if hit.match >= MOST_FLOOR]

    return evaluate(search, queries)


def still_unknown(corpus: Corpus, language: str, further: Further | None) -> float:
    """The share of the questions that nothing answers to which a recall says so; `None` without further queries."""
    unknown = 0
    for text in questions(language):
        found = corpus.hits(text)
        if further is not None and all(hit.match < MOST_FLOOR for hit in found):
            written = further(Query(text, frozenset(), language))
            if stays_with(text, written):
                found = joined(found, [corpus.hits(each) for each in written], MOST_FLOOR)
        unknown += all(hit.match < MOST_FLOOR for hit in found)
    return unknown / len(questions(language))


def writers(corpus: Corpus, language: str) -> dict[str, Further]:
    """Who writes further queries: one who knows the answer, one who asks something else, one who wants others found."""
    drawn = random.Random(16)
    everyday, names = questions(language), list(corpus.texts)

    def good(query: Query) -> list[str]:
        return [corpus.texts[name].splitlines()[0] for name in sorted(query.relevant) if name in corpus.texts][:3]

    def useless(_query: Query) -> list[str]:
        return drawn.sample(everyday, 3)

    def hostile(query: Query) -> list[str]:
        others = [name for name in drawn.sample(names, 6) if name not in query.relevant]
        return [corpus.texts[name][:200] for name in others[:3]]

    return {"good": good, "useless": useless, "hostile": hostile}


def measure(data: Path) -> dict[str, dict[str, Quality]]:
    """Every row by every kind of reranker, and by every kind of further queries."""
    table: dict[str, dict[str, Quality]] = {}
    for name in dict.fromkeys(row.corpus for row in ROWS):
        items = [orjson.loads(line) for line in (data / name / "knowledge.jsonl").read_bytes().splitlines()]
        with tempfile.TemporaryDirectory() as folder:
            engine = Engine(Path(folder), items)
            corpus = corpus_of(engine, items)
            for row in (row for row in ROWS if row.corpus == name):
                table |= _of_row(corpus, row, read_queries(data, row))
            engine.close()
    return table


def _of_row(corpus: Corpus, row: Row, queries: Sequence[Query]) -> dict[str, dict[str, Quality]]:
    found = {
        "without": with_reranker(corpus, queries, None),
        "good": with_reranker(corpus, queries, good_at(corpus, queries)),
    }
    found |= {kind: with_reranker(corpus, queries, scorer) for kind, scorer in RERANKERS.items()}
    shown = {"without": with_further(corpus, queries, None)}
    shown |= {kind: with_further(corpus, queries, one) for kind, one in writers(corpus, row.lang).items()}
    return {f"{row.name}, reranked": found, f"{row.name}, in other words": shown}


def measure_unknown(data: Path) -> dict[str, dict[str, float]]:
    """By language and kind of further queries, the share of questions that nothing answers which stay so."""
    items = [orjson.loads(line) for line in (data / "tldr" / "knowledge.jsonl").read_bytes().splitlines()]
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(Path(folder), items)
        corpus = corpus_of(engine, items)
        table = {}
        for language in ("en", "zh"):
            kinds = {"without": None, **writers(corpus, language)}
            table[f"nothing known, {language}"] = {
                kind: still_unknown(corpus, language, further) for kind, further in kinds.items()
            }
        engine.close()
    return table


def faults(table: Mapping[str, Mapping[str, Quality]]) -> list[str]:
    """Every figure that is below the one without, each in a sentence."""
    return [
        f"{row}: {name} is {after:.4f} with {kind!r}, and {before:.4f} without"
        for row, kinds in table.items()
        for kind, quality in kinds.items()
        if kind != MEDIOCRE
        for name, before, after in zip(FIGURES, kinds["without"].figures(), quality.figures(), strict=True)
        if after < before
    ]


def run() -> list[dict[str, Any]]:
    """The rows of `python -m bench`: the least figure with each kind, beside the one without."""
    data = data_directory()
    if not (data / "tldr" / "queries.jsonl").exists():
        return []
    return [
        {
            "row": f"heard, {row}, {kind}: {name}",
            "ours": after,
            "raw": before,
            "unit": "",
            "ratio": after / before,
            "target": ">= 1",
            "note": "bare: without",
        }
        for row, kinds in measure(data).items()
        for kind, quality in kinds.items()
        if kind != "without"
        for name, before, after in zip(FIGURES, kinds["without"].figures(), quality.figures(), strict=True)
    ]


def main() -> int:
    """Measure and print; returns the exit code."""
    data = data_directory()
    if not (data / "tldr" / "queries.jsonl").exists():
        print(f"no corpora in {data}; nothing measured", file=sys.stderr)
        return 0
    table = measure(data)
    for row, qualities in table.items():
        for kind, quality in qualities.items():
            print(f"{row:<26} {kind:<17} " + " ".join(f"{figure:7.4f}" for figure in quality.figures()))
    unknown = measure_unknown(data)
    for row, kinds in unknown.items():
        print(f"{row:<26} " + ", ".join(f"{kind} {share:.2f}" for kind, share in kinds.items()))
    wrong = faults(table) + [
        f"{row}: {share:.2f} with {kind!r}, and {kinds['without']:.2f} without"
        for row, kinds in unknown.items()
        for kind, share in kinds.items()
        if share < kinds["without"]
    ]
    print("\n".join(wrong) or "no figure is below the one without")
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Whether summaries of documents, matched first, find the right chunk better: `python -m bench.summaries_first`.

Documents are made of the corpora of bench/recall.py: of CMRC an article, each of its sentences a chunk and SECTION of
them a section; of tldr a page, each of its examples a chunk and a section. The summaries are those that are made
without a model. Prints R@5, R@10 and the mean reciprocal rank at 10 of the chunk that answers (of tldr, whose examples
answer no query, of any chunk of the right page).
"""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from bench.recall import CANDIDATES, ROWS, TOP_K, Quality, Query, Search, data_directory, evaluate, read_queries
from producers.documents.summaries import summaries
from projections.search.ranking import Candidate, Relevant, fuse
from projections.vectors.embedding.embeddings import HashedEmbedder
from projections.vectors.store.edge import EdgeStore
from projections.vectors.store.port import Point, SearchOptions
from projections.vectors.tokens import document_terms, query_terms

SECTION = 4
"""Sentences of a section of a CMRC article."""
FIRST = (10, 30, 100)
"""Summaries that are matched, and whose chunks alone are then searched."""
SHARES = (0.05, 0.1, 0.2, 0.4)
"""Part of the relevance of its summary that a chunk gets in addition to its own."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk, and the item of the corpus that it is of."""

    id: str
    item: str
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """A document: its title and the chunks of each of its sections."""

    id: str
    title: str
    sections: Sequence[Sequence[Chunk]]


def documents(corpus: str, items: Sequence[Mapping[str, Any]]) -> Iterator[Document]:
    """The documents that a corpus makes."""
    if corpus == "tldr":
        for item in items:
            lines = [line for line in item["content"].split("\n") if line.strip()] or [item["task"]]
            yield Document(
                item["id"],
                item["task"],
                [[Chunk(f"{item['id']}/{n}", item["id"], line)] for n, line in enumerate(lines)],
            )
        return
    articles: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for item in items:
        articles[item["source"]["message_id"]].append(item)
    for name, sentences in articles.items():
        chunks = [Chunk(item["id"], item["id"], item["content"]) for item in sentences]
        parts = [chunks[at : at + SECTION] for at in range(0, len(chunks), SECTION)]
        yield Document(name, sentences[0]["task"], parts)


def point(name: str, position: int, scopes: list[str], title: str, text: str, vector: NDArray[np.float32]) -> Point:
    """A text as it is stored."""
    return Point(
        item_id=name,
        version=1,
        position=position,
        scopes=scopes,
        types=["document"],
        owner="user:ann",
        dense=vector,
        sparse=document_terms(title, text),
    )


class Index:
    """A store of texts below titles, each in the scope of its document and section."""

    def __init__(self, folder: Path, texts: Sequence[tuple[str, str, str, list[str]]]) -> None:
        self._embedder = HashedEmbedder()
        self._store = EdgeStore(folder, self._embedder.model, self._embedder.dimensions)
        for at in range(0, len(texts), 256):
            part = texts[at : at + 256]
            vectors = self._embedder.vectors([f"{title}\n{text}" for _, title, text, _ in part])
            self._store.upsert(
                [
                    point(name, at + n, scopes, title, text, vector)
                    for n, ((name, title, text, scopes), vector) in enumerate(zip(part, vectors, strict=True), start=1)
                ]
            )

    def search(self, query: str, scopes: Sequence[str] = ("public",), limit: int = CANDIDATES) -> list[Relevant]:
        """The results by all paths, best first."""
        found = self._store.search(
            SearchOptions(scopes, limit=limit),
            dense=self._embedder.vectors([query])[0],
            sparse=query_terms(query, words_only=False),
        )
        candidates = [Candidate(each.item_id, each.valid_from, each.keyword, each.vector) for each in found]
        return fuse(candidates, fusion="scores", vector_weight=self._embedder.vector_weight)

    def close(self) -> None:
        self._store.close()


def ways(told: Sequence[Document], folder: Path) -> tuple[dict[str, Callable[[str], list[str]]], list[Index]]:
    """The searches that are compared, each giving ids of chunks; and what is to be closed."""
    chunks, of_documents, of_sections = [], [], []
    above: dict[str, dict[str, str]] = {"document": {}, "section": {}}
    for document in told:
        whole, parts = summaries([[chunk.text for chunk in section] for section in document.sections])
        of_documents.append((document.id, document.title, whole, ["public"]))
        for number, (section, part) in enumerate(zip(document.sections, parts, strict=True)):
            name = f"{document.id}#{number}"
            of_sections.append((name, document.title, part, ["public"]))
            for chunk in section:
                chunks.append((chunk.id, document.title, chunk.text, ["public", document.id, name]))
                above["document"][chunk.id], above["section"][chunk.id] = document.id, name
    flat = Index(folder / "chunks", chunks)
    summed = {"document": Index(folder / "documents", of_documents), "section": Index(folder / "sections", of_sections)}

    def alone(query: str) -> list[str]:
        return [each.candidate.item_id for each in flat.search(query)]

    def first(kind: str, count: int) -> Callable[[str], list[str]]:
        def search(query: str) -> list[str]:
            scopes = [each.candidate.item_id for each in summed[kind].search(query, limit=count)[:count]]
            return [each.candidate.item_id for each in flat.search(query, scopes)] if scopes else []

        return search

    def shared(kind: str, share: float) -> Callable[[str], list[str]]:
        def search(query: str) -> list[str]:
            lent = {each.candidate.item_id: each.relevance for each in summed[kind].search(query, limit=100)}
            own = {each.candidate.item_id: each.relevance for each in flat.search(query)}
            scored = {name: own[name] + share * lent.get(above[kind][name], 0.0) for name in own}
            return sorted(scored, key=lambda name: -scored[name])

        return search

    compared: dict[str, Callable[[str], list[str]]] = {"chunks alone": alone}
    for kind in summed:
        compared |= {f"{count} {kind}s first": first(kind, count) for count in FIRST}
        compared |= {f"{kind} adds {share:.0%}": shared(kind, share) for share in SHARES}
    return compared, [flat, *summed.values()]


def of_items(search: Callable[[str], list[str]], told: Sequence[Document]) -> Search:
    """The same, with the item of each chunk, each once."""
    item_of = {chunk.id: chunk.item for document in told for section in document.sections for chunk in section}
    return lambda query: [*dict.fromkeys(item_of[name] for name in search(query))][:TOP_K]


def measure(data: Path) -> dict[tuple[str, str], Quality]:
    """The quality by row of bench/recall.py and way."""
    table: dict[tuple[str, str], Quality] = {}
    for corpus in dict.fromkeys(row.corpus for row in ROWS):
        lines = (data / corpus / "knowledge.jsonl").read_bytes().splitlines()
        told = [*documents(corpus, [orjson.loads(line) for line in lines])]
        with tempfile.TemporaryDirectory() as folder:
            compared, indexes = ways(told, Path(folder))
            for row in (row for row in ROWS if row.corpus == corpus):
                queries: list[Query] = read_queries(data, row)
                for name, search in compared.items():
                    table[row.name, name] = evaluate(of_items(search, told), queries)
            for index in indexes:
                index.close()
    return table


def main() -> None:
    """Print the table."""
    print(f"{'corpus':<12} {'way':<24} {'R@5':>6} {'R@10':>6} {'MRR@10':>7}")
    for (row, way), quality in measure(data_directory()).items():
        r5, r10, mrr10 = quality.figures()
        print(f"{row:<12} {way:<24} {r5:6.3f} {r10:6.3f} {mrr10:7.3f}", flush=True)


if __name__ == "__main__":
    main()

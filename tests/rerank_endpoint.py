"""The reranking half of the local server: scores as a cross-encoder would give them, and every way to misbehave.

The path says whose shape is spoken: `/v1/rerank` that of Cohere, Jina and vLLM, `/tei/rerank` that of TEI.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from projections.vectors.tokens import query_terms

Scorer = Callable[[str, Sequence[str]], list[float]]


def by_shared_words(query: str, texts: Sequence[str]) -> list[float]:
    """The share of the query's words that a text has: what a good model gives, in words."""
    wanted = set(query_terms(query, words_only=True).indices.tolist())
    return [
        len(wanted & set(query_terms(text, words_only=True).indices.tolist())) / max(1, len(wanted)) for text in texts
    ]


def constant(query: str, texts: Sequence[str]) -> list[float]:
    return [0.5] * len(texts)


def at_random(query: str, texts: Sequence[str]) -> list[float]:
    drawn = random.Random(zlib.crc32(query.encode()))
    return [drawn.random() for _ in texts]


def reversed_order(query: str, texts: Sequence[str]) -> list[float]:
    return [-score for score in by_shared_words(query, texts)]


def all_on_the_worst(query: str, texts: Sequence[str]) -> list[float]:
    scores = by_shared_words(query, texts)
    return [float(place == scores.index(min(scores))) for place in range(len(scores))]


def by_place(query: str, texts: Sequence[str]) -> list[float]:
    return [1.0 - place / len(texts) for place in range(len(texts))]


@dataclass
class RerankEndpoint:
    """What was asked, how it is scored, and how it is to misbehave."""

    scorer: Scorer = by_shared_words
    asked: list[dict[str, Any]] = field(default_factory=list)
    bearers: list[str] = field(default_factory=list)
    spoil: Callable[[list[dict[str, Any]]], Any] | None = None
    """Makes the answer out of the results, in place of the shape of the endpoint."""
    raw: bytes | None = None
    """Answered as it is."""
    status: int = 200
    repeats_texts: bool = False

    def answer(self, path: str, bearer: str, body: bytes) -> tuple[int, bytes]:
        request = orjson.loads(body)
        self.asked.append(request)
        self.bearers.append(bearer)
        if self.status != 200:
            return self.status, b'{"error": "a secret of the prompt"}'
        if self.raw is not None:
            return 200, self.raw
        tei = path.startswith("/tei")
        name = "texts" if tei else "documents"
        if name not in request:
            return 422, f"Failed to deserialize the JSON body: missing field `{name}` at line 1".encode()
        texts = request[name]
        scores = self.scorer(request["query"], texts)
        order = sorted(range(len(texts)), key=lambda place: -scores[place])
        key = "score" if tei else "relevance_score"
        results: list[dict[str, Any]] = [{"index": place, key: scores[place]} for place in order]
        if self.repeats_texts:
            for each in results:
                each["document"] = {"text": texts[each["index"]]}
        document: Any = results if tei else {"id": "r-1", "model": request.get("model"), "results": results}
        return 200, orjson.dumps(document if self.spoil is None else self.spoil(results))

"""Store of embeddings, so that none of an item is paid for twice.

Those of questions are in memory alone, the latest ones: what a person asked may be in nothing that a forgetting reads.
The key of an embedding is its model, its dimensions and the SHA-256 of its text. An endpoint's answers are stored
before they are used, batch by batch, so that a failure in a later batch loses nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from projections.vectors.embedding.embeddings import Embedder, Vectors

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class EmbeddingKey:
    """Key of a stored embedding; `text_hash` is 64 hexadecimal digits."""

    model: str
    dimensions: int
    text_hash: str


class EmbeddingStore(Protocol):
    """Permanent store of embeddings."""

    async def get_many(self, keys: Iterable[EmbeddingKey]) -> dict[EmbeddingKey, Vector]:
        """The stored ones of these embeddings."""

    async def put_many(self, embeddings: Mapping[EmbeddingKey, Vector]) -> None:
        """Store these; returns when they are durable."""


class MemoryEmbeddings:
    """Store of embeddings in memory, of the `most` latest ones; None for all: for tests and notebooks."""

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._kept: dict[EmbeddingKey, Vector] = {}

    async def get_many(self, keys: Iterable[EmbeddingKey]) -> dict[EmbeddingKey, Vector]:
        return {key: self._kept[key] for key in keys if key in self._kept}

    async def put_many(self, embeddings: Mapping[EmbeddingKey, Vector]) -> None:
        self._kept.update(embeddings)
        if self._most is not None:
            for key in list(self._kept)[: max(0, len(self._kept) - self._most)]:
                del self._kept[key]


MOST_QUESTIONS = 1_000
"""Embeddings of questions in memory: 2 MB at 512 dimensions."""


class KeptEmbedder:
    """Cache around a paid embedder: pays once for each text that its store keeps.

    `paid_calls` and `paid_texts` count the calls to it.
    """

    def __init__(self, embedder: Embedder, store: EmbeddingStore) -> None:
        self.model = embedder.model
        self.dimensions = embedder.dimensions
        self.batch_size = embedder.batch_size
        self.vector_weight = embedder.vector_weight
        self.paid_calls = 0
        self.paid_texts = 0
        self._embedder = embedder
        self._store = store

    async def embed(self, texts: Sequence[str]) -> Vectors:
        keys = [self._key(text) for text in texts]
        wanted = {key: text for key, text in zip(keys, texts, strict=True) if text.strip()}
        known = await self._store.get_many(wanted)
        missing = [(key, text) for key, text in wanted.items() if key not in known]
        batches = [missing[at : at + self.batch_size] for at in range(0, len(missing), self.batch_size)]
        # a failed batch does not cancel the others: they are billed already
        answers = await asyncio.gather(*map(self._pay, batches), return_exceptions=True)
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer
            known.update(answer)
        blank = np.zeros(self.dimensions, np.float32)
        rows = [known.get(key, blank) for key in keys]
        return np.stack(rows) if rows else np.zeros((0, self.dimensions), np.float32)

    async def _pay(self, batch: Sequence[tuple[EmbeddingKey, str]]) -> dict[EmbeddingKey, Vector]:
        self.paid_calls += 1
        self.paid_texts += len(batch)
        vectors = await self._embedder.embed([text for _, text in batch])
        given = {key: vector for (key, _), vector in zip(batch, vectors, strict=True)}
        await self._store.put_many(given)
        return given

    def _key(self, text: str) -> EmbeddingKey:
        return EmbeddingKey(self.model, self.dimensions, hash_of(text))


def hash_of(text: str) -> str:
    """The part of an embedding's key that the text decides."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

"""Embedding of queries with a deadline, so that no search waits long for an endpoint.

A call that misses the deadline goes on in the background; the same query has its answer the next time.
The search itself is then answered by keywords. After several failures in a row searches call no more: a separate probe
detects when the endpoint answers within the deadline again.
"""

from __future__ import annotations

import asyncio
import contextlib

from ledger.runtime.breaker import Breaker
from projections.vectors.embedding.embeddings import PROBE, Embedder, Vectors
from projections.vectors.embedding.kept import Vector
from projections.vectors.errors import EmbeddingFailed

MOST_AT_ONCE = 16
"""The most queries that wait for the endpoint; a further one is answered by keywords at once."""


class QueryEmbedder:
    """Embeds queries through the cache `kept`, and probes `endpoint` directly after an outage."""

    def __init__(self, kept: Embedder, endpoint: Embedder, deadline: float) -> None:
        self._kept = kept
        self._endpoint = endpoint
        self._deadline = deadline
        self.breaker = Breaker()
        self._pending: dict[str, asyncio.Task[Vectors]] = {}
        self._probing: asyncio.Task[None] | None = None
        self.missed = 0
        """Queries that were answered without their vector."""

    async def vector(self, query: str) -> tuple[Vector | None, str | None]:
        """The vector of a query within the deadline, or why there is none."""
        vector, reason = await self._vector(query)
        self.missed += reason is not None
        return vector, reason

    async def _vector(self, query: str) -> tuple[Vector | None, str | None]:
        if self.breaker.reason is not None:
            self._probe()
            return None, self.breaker.reason
        call = self._pending.get(query)
        if call is None:
            if len(self._pending) >= MOST_AT_ONCE:
                return None, f"{MOST_AT_ONCE} queries wait for {self._kept.model} already"
            call = self._pending[query] = asyncio.create_task(self._kept.embed([query]))
            call.add_done_callback(lambda _: self._pending.pop(query, None))
            call.add_done_callback(_noted)
        try:
            async with asyncio.timeout(self._deadline):
                vectors = await asyncio.shield(call)
        except TimeoutError:
            reason = f"{self._kept.model} gave no vector within {self._deadline:g} s"
            self._failed(reason)
            return None, reason
        except EmbeddingFailed as error:
            if not error.refused:  # a refused query says nothing about others
                self._failed(error.message, error.retry_after, useless=error.useless)
            return None, error.message
        except Exception as error:  # the broker with the stored embeddings may fail too
            reason = str(error) or repr(error)
            self._failed(reason)
            return None, reason
        self.breaker.succeeded()
        return vectors[0], None

    def _failed(self, reason: str, retry_after: float | None = None, *, useless: bool = False) -> None:
        self.breaker.failed(reason, retry_after, useless=useless)
        if self.breaker.reason is not None:
            self._probe()

    def _probe(self) -> None:
        if self._probing is None or self._probing.done():
            self._probing = asyncio.create_task(self._until_back(), name="embedding-probe")

    async def _until_back(self) -> None:
        while self.breaker.reason is not None:
            await asyncio.sleep(self.breaker.due())
            try:
                async with asyncio.timeout(self._deadline):
                    await self._endpoint.embed([PROBE])
            except TimeoutError:
                self.breaker.failed(f"{self._endpoint.model} gave no vector within {self._deadline:g} s")
            except EmbeddingFailed as error:
                self.breaker.failed(error.message, error.retry_after, useless=error.useless)
            else:
                self.breaker.succeeded()

    async def close(self) -> None:
        """Cancel all calls."""
        left = [*self._pending.values(), *([self._probing] if self._probing else [])]
        for task in left:
            task.cancel()
        with contextlib.suppress(Exception):
            await asyncio.gather(*left, return_exceptions=True)


def _noted(call: asyncio.Task[Vectors]) -> None:
    """Mark a failure after the deadline as retrieved: its query has been answered already."""
    if not call.cancelled():
        call.exception()

"""Engine of the vector process: searches and indexing on one store, with priority for searches.

Everything on the store of this process happens in one thread, so a search needs no turn: it is answered as it is read.
Indexing works in slices of a few milliseconds, and what has arrived is read between two of them. While there are
searches, indexing also pauses after each slice for twice as long as the slice took.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from kledger.contract.errors import InvalidPayload, LogGap
from projections.vectors.embedding.embeddings import Embedder, HashedEmbedder
from projections.vectors.embedding.kept import Vector
from projections.vectors.embedding.queries import QueryEmbedder
from projections.vectors.errors import VectorStoreFailed
from projections.vectors.examination import differences
from projections.vectors.question import Searched, embedded_of, terms_of
from projections.vectors.slices import next_slice
from projections.vectors.store.points import points_of, text_of
from projections.vectors.store.port import Awaiting, Found, Point, SearchOptions, VectorStore
from projections.vectors.wire import Change, Close, Paths, Store

REST_FACTOR = 2.0  # pause after a slice while there are searches, in units of the slice's time
SEARCHED_RECENTLY_SECONDS = 1.0
# A checkpoint takes 30 ms of processor time and writes to the disk that the broker syncs to: not after every batch, and
# not for more than a part of the time, however slow the disk is.
CHECKPOINT_SECONDS = 5.0
CHECKPOINT_REST_FACTOR = 20.0
MOST_CHECKPOINT_SECONDS = 20.0
_FIRST_SLICE = 8
USUAL_SECONDS = 2.0
"""The usual time until a version is embedded; searches report a backlog that lasts longer."""

T = TypeVar("T")


class Engine:
    """One store, its embedder, and a queue of writes, which `run` works through; searches are answered between them."""

    def __init__(self, store: VectorStore, embedder: Embedder, queries: QueryEmbedder | None = None) -> None:
        self._store = store
        self._embedder = embedder
        self._queries = queries
        self._awaiting = 0 if queries is None else store.count_awaiting()
        self._writes: asyncio.Queue[Callable[[], Awaitable[None]]] = asyncio.Queue()
        self._work = asyncio.Event()
        self._last_search = float("-inf")
        self._checkpointed = self._behind_since = time.monotonic()
        self._checkpoint_took = 0.0
        self._slice = _FIRST_SLICE
        self._applied = self._durable = store.checkpoint()
        self._pending = 0

    @property
    def finds_at_once(self) -> bool:
        """Whether a search waits for nothing: neither for the vector of its query nor for a server."""
        return self._queries is None and not self._store.waits_on_network

    def found(self, query: Searched, options: SearchOptions, paths: Paths, dense: Vector | None = None) -> list[Found]:
        """See `port.VectorStore.search`; `dense`: the query, where a model makes the vectors. Raises VectorsDamaged."""
        self._last_search = time.monotonic()
        return self._store.search(
            options,
            dense=self._query_vector(query, paths) if self._queries is None else dense,
            sparse=None if paths == "vector" else terms_of(query, words_only=paths == "keyword"),
        )

    async def search(
        self, query: Searched, options: SearchOptions, paths: Paths = "fused"
    ) -> tuple[list[Found], str | None]:
        """What is found, in every kind of store and of vectors; and why dense vectors were not used for all hits."""
        self._last_search = time.monotonic()
        dense: Vector | None = None
        lacking: str | None = None
        if paths != "keyword" and self._queries is not None:
            # awaited here, so that others are served meanwhile
            dense, lacking = await self._queries.vector(embedded_of(query))
            lacking = lacking or self._behind()
        if self._store.waits_on_network:
            return await asyncio.to_thread(self.found, query, options, paths, dense), lacking
        return self.found(query, options, paths, dense), lacking

    def _behind(self) -> str | None:
        if not self._awaiting or time.monotonic() - self._behind_since < USUAL_SECONDS:
            return None
        return f"{self._awaiting} versions await their embedding and are found by their words alone"

    async def index(self, changes: Sequence[Change], *, after: int, checkpoint: int) -> int:
        """Apply the changes of the events in (after, checkpoint]; returns the applied position.

        A batch that was applied before is skipped. Raises LogGap when `after` is beyond the applied position (an
        earlier batch failed or was lost: feed again from the status's `applied`), InvalidPayload, VectorStoreFailed;
        then the batch is not applied. Does not wait for embeddings: see `embed`.
        """
        if checkpoint < after:
            raise InvalidPayload(f"a batch after {after} cannot end at {checkpoint}")
        self._pending += len(changes)
        try:
            return await self._queued(lambda: self._apply(changes, after, checkpoint))
        finally:
            self._pending -= len(changes)

    async def examine(self, changes: Sequence[Store], searched: int) -> list[str]:
        """Differences between the store and these versions, described; `searched` of them are also searched for."""
        if self._store.waits_on_network:
            return await asyncio.to_thread(self._examine, changes, searched)
        result: list[str] = []
        for at in range(0, len(changes), _FIRST_SLICE):
            part = changes[at : at + _FIRST_SLICE]
            result += await self._queued(partial(self._call, self._examine, part, max(0, searched - at)))
        return result

    def _examine(self, changes: Sequence[Store], searched: int) -> list[str]:
        return differences(self._store, self._points(changes), searched)

    def _points(self, stores: Sequence[Store]) -> list[Point]:
        """The points of versions, with their dense vectors where no model has to be asked for them."""
        if self._queries is not None:
            return points_of(stores, [None] * len(stores))
        return points_of(stores, list(self._hashed().vectors([text_of(each) for each in stores])))

    async def awaiting(self, most: int) -> list[Awaiting]:
        return await self._queued(lambda: self._call(self._store.awaiting, most))

    async def embed(self, texts: Sequence[tuple[str, int, str, str]]) -> None:
        """Give versions (item, version, task, content) their dense vectors. Raises EmbeddingFailed.

        A blank text gets none. Blocks no other request meanwhile.
        """
        inputs = [f"{task}\n{content}" for _, _, task, content in texts]
        vectors = await self._embedder.embed(inputs)
        embedded = [
            ((item_id, version), vector if text.strip() else None)
            for (item_id, version, _, _), text, vector in zip(texts, inputs, vectors, strict=True)
        ]
        for at in range(0, len(embedded), _FIRST_SLICE):  # searches are answered between two slices
            await self._queued(partial(self._call, self._store.embed, dict(embedded[at : at + _FIRST_SLICE])))
        await self._queued(self._count_awaiting)

    async def embeddings(self) -> dict[str, Any]:
        """The number of versions without an embedding, and the error of the queries' embeddings."""
        if self._queries is None:
            return {"awaiting": 0, "trouble": None, "calls": 0, "missed": 0}
        await self._queued(self._count_awaiting)
        return {
            "awaiting": self._awaiting,
            "trouble": self._queries.breaker.reason,
            "calls": getattr(self._embedder, "paid_calls", 0),
            "missed": self._queries.missed,
        }

    async def _count_awaiting(self) -> None:
        before, self._awaiting = self._awaiting, await self._call(self._store.count_awaiting)
        if not before and self._awaiting:
            self._behind_since = time.monotonic()

    async def erase(self, item_ids: Sequence[str]) -> None:
        """Remove every version of these items, whatever position is applied."""
        await self._queued(lambda: self._call(self._store.erase, item_ids))

    async def flush(self) -> int:
        """Make everything applied so far durable; returns that position."""
        return await self._queued(self._flush)

    async def clear(self) -> int:
        """Remove everything, to be fed from the start; returns the applied position, 0."""
        return await self._queued(self._clear)

    async def optimize(self) -> bool:
        """Build search indexes. With Edge this blocks all other requests."""
        return await self._queued(lambda: self._call(self._store.optimize))

    async def digest(self) -> str:
        """The store's digest, over everything applied so far."""
        return await self._queued(lambda: self._call(self._store.digest))

    async def status(self) -> dict[str, Any]:
        """The applied and the durable position, the number of points, and the pending work."""
        if self._store.waits_on_network and not self._pending:  # another node may have written meanwhile
            self._durable = max(self._durable, await self._call(self._store.checkpoint))
            self._applied = max(self._applied, self._durable)
        return {
            "model": self._embedder.model,
            "dimensions": self._embedder.dimensions,
            "vector_weight": self._embedder.vector_weight,
            "checkpoint": self._durable,
            "applied": self._applied,
            "count": await self._call(self._store.count),
            "pending": self._pending,
            "awaiting": self._awaiting,
            "paid_calls": getattr(self._embedder, "paid_calls", 0),
            "paid_texts": getattr(self._embedder, "paid_texts", 0),
        }

    async def run(self) -> None:
        """Process writes until cancelled."""
        while True:
            if not self._writes.empty():
                await self._writes.get_nowait()()
            elif self._applied > self._durable:
                await self._flush_when_due()
            else:
                await self._work.wait()
            self._work.clear()
            if not self._writes.empty():
                self._work.set()

    async def close(self) -> None:
        """Flush and close the store. Call after `run` has ended."""
        await self._flush()
        await self._call(self._store.close)

    async def _queued(self, write: Callable[[], Awaitable[T]]) -> T:
        done: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        async def do() -> None:
            try:
                result = await write()
            except Exception as error:  # raised in the caller of the write
                if not done.done():
                    done.set_exception(error)
            else:
                if not done.done():
                    done.set_result(result)

        self._writes.put_nowait(do)
        self._work.set()
        return await done

    async def _apply(self, changes: Sequence[Change], after: int, checkpoint: int) -> int:
        if checkpoint <= self._applied:
            return self._applied
        if after > self._applied:
            raise LogGap(
                f"changes after position {after} were given, but only those up to {self._applied} are applied: "
                f"feed again from {self._applied + 1}"
            )
        at = 0
        while at < len(changes):
            began = time.perf_counter()
            until = min(at + self._slice, len(changes))
            await self._call(self._write, changes[at:until])
            worked = time.perf_counter() - began
            self._slice = next_slice(self._slice, until - at, worked, searched=self._searched_recently())
            at = until
            await self._rest(worked)
        self._applied = max(self._applied, checkpoint)
        if self._queries is not None and changes:
            await self._count_awaiting()
        if self._until_checkpoint() < 0:
            await self._flush()
        return self._applied

    def _write(self, changes: Sequence[Change]) -> None:
        """Write these in their order: points before a close or an erasure are stored before it."""
        made = iter(self._points([change for change in changes if isinstance(change, Store)]))
        points: list[Point] = []
        for change in changes:
            if isinstance(change, Store):
                points.append(next(made))
                continue
            self._store.upsert(points)
            points = []
            if isinstance(change, Close):
                self._store.close_version(change.item_id, change.version, change.valid_to)
            else:
                self._store.erase(change.item_ids)
        if points:
            self._store.upsert(points)

    async def _rest(self, worked: float) -> None:
        """Let the searches that wait be answered, and leave time for the next ones."""
        await asyncio.sleep(0)
        if self._searched_recently():
            await asyncio.sleep(worked * REST_FACTOR)

    def _searched_recently(self) -> bool:
        return time.monotonic() - self._last_search < SEARCHED_RECENTLY_SECONDS

    async def _flush_when_due(self) -> None:
        left = self._until_checkpoint()
        if left > 0 and await self._work_within(left):
            return
        await self._flush()

    def _until_checkpoint(self) -> float:
        rest = min(CHECKPOINT_REST_FACTOR * self._checkpoint_took, MOST_CHECKPOINT_SECONDS)
        return max(CHECKPOINT_SECONDS, rest) - (time.monotonic() - self._checkpointed)

    async def _work_within(self, seconds: float) -> bool:
        """Whether a write arrives within this time."""
        self._work.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._work.wait()
        except TimeoutError:
            return False
        return True

    async def _flush(self) -> int:
        if self._applied > self._durable:
            began = time.monotonic()
            await self._call(self._store.set_checkpoint, self._applied)
            self._durable, self._checkpoint_took = self._applied, time.monotonic() - began
        self._checkpointed = time.monotonic()
        return self._durable

    async def _clear(self) -> int:
        await self._call(self._store.clear)
        self._applied = self._durable = 0
        return 0

    async def _call(self, function: Callable[..., T], *arguments: Any) -> T:
        if self._store.waits_on_network:
            return await asyncio.to_thread(function, *arguments)
        return function(*arguments)

    def _query_vector(self, query: Searched, paths: Paths) -> Vector | None:
        return None if paths == "keyword" else self._hashed().query(query)

    def _hashed(self) -> HashedEmbedder:
        if not isinstance(self._embedder, HashedEmbedder):
            raise VectorStoreFailed(f"{self._embedder.model} gave no vectors before they were stored")
        return self._embedder

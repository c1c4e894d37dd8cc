"""The vector process: `python -m projections.vectors.process`.

Qdrant Edge holds the interpreter's lock while it works, so it has a process of its own, which also computes the
vectors. It reads its settings from the first frame on standard input, answers requests on standard output until the
input ends, and then exits: it never outlives its parent. It logs to standard error. Frames as in `wire.py`; `client.py`
is the other end.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO

import uvloop

from kledger.contract.errors import InvalidPayload, LedgerError, ServiceFailed
from ledger.runtime.gc_tuning import collect_seldom
from ledger.runtime.late_logs import log_to_stderr_late
from ledger.runtime.report_stream import report_stream
from projections.vectors.embedding.embeddings import Embedder, HashedEmbedder, OpenAIEmbedder
from projections.vectors.embedding.kept import MOST_QUESTIONS, EmbeddingStore, KeptEmbedder, MemoryEmbeddings
from projections.vectors.embedding.queries import QueryEmbedder
from projections.vectors.engine import Engine
from projections.vectors.errors import EmbeddingFailed
from projections.vectors.question import searched_in
from projections.vectors.store.edge import EdgeStore
from projections.vectors.store.port import Found, SearchOptions, VectorStore
from projections.vectors.wire import Frame, KeptAt, Settings, Store, Unpacked, pack, read_change, read_settings

log = logging.getLogger("projections.vectors.process")  # as a program it has another name

_QUERY_SECONDS = 5.0  # a query's embedding that misses the deadline may still arrive, and is stored then


class Requests(asyncio.Protocol):
    """The requests of a stream, as they come."""

    def __init__(self) -> None:
        self._unpacked = Unpacked()
        self._take: Callable[[Frame], None] | None = None
        self._came: asyncio.Queue[Frame | None] = asyncio.Queue()
        self.ended = asyncio.Event()
        """No more come, or none is wanted."""

    async def first(self) -> Frame | None:
        """The first one; None where the stream ends before."""
        return await self._came.get()

    def hand_to(self, take: Callable[[Frame], None]) -> None:
        """Have all that follow taken as they are read."""
        self._take = take
        while not self._came.empty():
            if (frame := self._came.get_nowait()) is not None:
                take(frame)

    def data_received(self, data: bytes) -> None:
        """What came."""
        try:
            for frame in self._unpacked.more(data):
                self._came.put_nowait(frame) if self._take is None else self._take(frame)
        except InvalidPayload as error:
            log.error("what the node sends cannot be read: %s", error.message)
            self.connection_lost(None)

    def connection_lost(self, _: Exception | None) -> None:
        """The parent has exited, or closed the stream."""
        self._came.put_nowait(None)
        self.ended.set()


async def serve(requests: Requests, answers: asyncio.StreamWriter) -> None:
    """Answer requests until their stream ends."""
    first = await requests.first()
    if first is None:
        return
    async with contextlib.AsyncExitStack() as open_until_the_end:
        try:
            embedder, queries = await _embedder(read_settings(first), open_until_the_end)
            engine = Engine(_store(read_settings(first), embedder), embedder, queries)
        except LedgerError as error:
            await _answer(answers, {"id": 0, "error": _fault(error)})
            return
        await _answer(answers, {"id": 0, "ok": await engine.status()})
        await _converse(engine, requests, answers)


async def _converse(engine: Engine, requests: Requests, answers: asyncio.StreamWriter) -> None:
    working = asyncio.create_task(engine.run())
    listening = asyncio.create_task(_listen(engine, requests, answers))
    try:
        await asyncio.wait((working, listening), return_when=asyncio.FIRST_COMPLETED)
        if working.done():  # the engine ends only by a failure: exit, rather than leave requests waiting
            await working
    finally:
        working.cancel()
        listening.cancel()
        await asyncio.gather(working, listening, return_exceptions=True)
    await engine.close()


async def _listen(engine: Engine, requests: Requests, answers: asyncio.StreamWriter) -> None:
    under_way: set[asyncio.Task[None]] = set()

    def take(frame: Frame) -> None:
        if frame.get("do") == "search" and engine.finds_at_once:
            _find(engine, frame, answers)
            return
        task = asyncio.create_task(_handle(engine, frame, answers))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
        if frame.get("do") == "close":
            task.add_done_callback(lambda _: requests.ended.set())

    try:
        requests.hand_to(take)
        await requests.ended.wait()
    finally:
        left = list(under_way)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


def _find(engine: Engine, frame: Frame, answers: asyncio.StreamWriter) -> None:
    """Answer a search that waits for nothing where it is read: a task and a turn for it took as long as its engine."""
    try:
        hits = engine.found(searched_in(frame["query"]), SearchOptions(**frame["options"]), frame["paths"])
        answer: Frame = {"id": frame["id"], "ok": _found(hits, None)}
    except Exception as error:
        answer = _failed(frame, error)
    with contextlib.suppress(ConnectionError):  # as in `_answer`
        answers.write(pack(answer))


async def _handle(engine: Engine, frame: Frame, answers: asyncio.StreamWriter) -> None:
    try:
        answer: Frame = {"id": frame["id"], "ok": await _do(engine, frame)}
    except Exception as error:
        answer = _failed(frame, error)
    await _answer(answers, answer)


def _failed(frame: Frame, error: Exception) -> Frame:
    if not isinstance(error, LedgerError):
        log.error("the request %r failed", frame.get("do"), exc_info=error)
        error = ServiceFailed(f"the vector process failed: {error!r}")
    return {"id": frame["id"], "error": _fault(error)}


def _found(hits: Sequence[Found], lacking: str | None) -> Frame:
    return {"found": [tuple(hit) for hit in hits], "lacking": lacking}


async def _do(engine: Engine, frame: Frame) -> Any:
    verb, given = frame.get("do"), {key: value for key, value in frame.items() if key not in ("id", "do")}
    match verb:
        case "search":
            return _found(
                *await engine.search(searched_in(given["query"]), SearchOptions(**given["options"]), given["paths"])
            )
        case "index":
            changes = [read_change(change) for change in given["changes"]]
            return await engine.index(changes, after=given["after"], checkpoint=given["checkpoint"])
        case "examine":
            stores = [change for each in given["changes"] if isinstance(change := read_change(each), Store)]
            return await engine.examine(stores, given["searched"])
        case "awaiting":
            return [list(each) for each in await engine.awaiting(given["most"])]
        case "embed":
            return await engine.embed([(item, version, task, text) for item, version, task, text in given["texts"]])
        case "embeddings":
            return await engine.embeddings()
        case "erase":
            return await engine.erase(given["item_ids"])
        case "status":
            return await engine.status()
        case "flush" | "close":
            return await engine.flush()
        case "clear":
            return await engine.clear()
        case "optimize":
            return await engine.optimize()
        case "digest":
            return await engine.digest()
        case _:
            raise InvalidPayload(f"the vector process knows no {verb!r}")


async def _embedder(
    settings: Settings, open_until_the_end: contextlib.AsyncExitStack
) -> tuple[Embedder, QueryEmbedder | None]:
    """The embedders of items and of queries; with an endpoint they are two, as a query has no time for retries."""
    wanted = settings.embedding
    if wanted is None:
        return HashedEmbedder(), None
    patient, hasty = (
        OpenAIEmbedder(
            base_url=wanted.base_url,
            api_key=wanted.api_key,
            model=wanted.model,
            dimensions=wanted.dimensions,
            timeout=timeout,
            retries=retries,
            concurrency=wanted.concurrency,
            shorten=wanted.shorten,
        )
        for timeout, retries in ((wanted.timeout, wanted.retries), (max(_QUERY_SECONDS, wanted.deadline), 0))
    )
    open_until_the_end.push_async_callback(patient.close)
    open_until_the_end.push_async_callback(hasty.close)
    kept: EmbeddingStore = MemoryEmbeddings()
    if settings.kept_at is not None:
        kept = await _kept(settings.kept_at, open_until_the_end)
    questions = MemoryEmbeddings(MOST_QUESTIONS)
    queries = QueryEmbedder(KeptEmbedder(hasty, questions), hasty, wanted.deadline)
    open_until_the_end.push_async_callback(queries.close)
    return KeptEmbedder(patient, kept), queries


async def _kept(at: KeptAt, open_until_the_end: contextlib.AsyncExitStack) -> EmbeddingStore:
    # With what these import they take a third of the time of a start, and a node without a model needs none of them.
    from ledger.broker.access import BrokerAccess, Role
    from ledger.broker.connection import BrokerConnection
    from projections.vectors.embedding.kept_jetstream import JetStreamEmbeddings

    access = BrokerAccess.from_url(at.url)
    role: Role = "node" if at.role == "node" else "reader"
    if at.password is not None:
        access = BrokerAccess(access.url, {role: at.password})
    connection = await BrokerConnection.open(access, role, name="kledger-vectors")
    open_until_the_end.push_async_callback(connection.close)
    return JetStreamEmbeddings(connection)


def _store(settings: Settings, embedder: Embedder) -> VectorStore:
    if settings.qdrant_url is not None:
        # Both take longer to import than all the rest, and a node without a Qdrant server needs neither.
        from qdrant_client import QdrantClient

        from projections.vectors.store.server import ServerStore

        client = QdrantClient(url=settings.qdrant_url, api_key=settings.qdrant_api_key)
        without_password = settings.qdrant_url.rpartition("@")[2].rpartition("//")[2]
        return ServerStore(client, embedder.model, embedder.dimensions, at=without_password)
    if settings.directory is not None:
        return EdgeStore(Path(settings.directory), embedder.model, embedder.dimensions)
    raise InvalidPayload("the vector process needs a directory or the URL of a Qdrant server")


async def _answer(answers: asyncio.StreamWriter, frame: Frame) -> None:
    with contextlib.suppress(ConnectionError):  # the parent has exited: its closed stream ends this process too
        answers.write(pack(frame))
        await answers.drain()


def _fault(error: LedgerError) -> Frame:
    fault: Frame = {"code": error.code, "message": error.message}
    if isinstance(error, EmbeddingFailed):
        fault |= {"retry_after": error.retry_after, "refused": error.refused, "useless": error.useless}
    return fault


async def _main(output: BinaryIO) -> None:
    loop = asyncio.get_running_loop()
    _, requests = await loop.connect_read_pipe(Requests, sys.stdin.buffer)
    transport, protocol = await loop.connect_write_pipe(lambda: asyncio.streams.FlowControlMixin(loop=loop), output)
    await serve(requests, asyncio.StreamWriter(transport, protocol, None, loop))


if __name__ == "__main__":
    # On Ctrl-C, a service's stop or the end of a terminal, the parent decides when to end.
    for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(kind, signal.SIG_IGN)
    frames = report_stream()
    log_to_stderr_late()
    collect_seldom()
    uvloop.run(_main(frames))

"""Client of the vector process: starts it, and sends it requests from the node."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import sys
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from kledger.contract import errors
from kledger.contract.errors import LedgerError, ServiceFailed
from ledger.runtime.private import child_environment
from projections.vectors.errors import EmbeddingFailed, VectorProcessGone, VectorsDamaged, VectorStoreFailed
from projections.vectors.store.port import Awaiting, Found, Only
from projections.vectors.wire import Change, Frame, Paths, Settings, Store, change_frame, pack, receive, settings_frame

log = structlog.get_logger(__name__)

_ROOT = Path(__file__).parents[2]
_START_SECONDS = 60.0
_END_SECONDS = 30.0
_LAST_WORDS = 20
_SIGBUS = int(getattr(signal, "SIGBUS", 7))
_BUS_ERROR = ", a bus error: its disk is full"  # what a file that is mapped into memory ends with then
_ERRORS: dict[str, type[LedgerError]] = {
    kind.code: kind
    for kind in (
        EmbeddingFailed,
        VectorStoreFailed,
        VectorsDamaged,
        errors.InvalidPayload,
        errors.LogGap,
        errors.BrokerUnavailable,
        errors.BrokerMisconfigured,
    )
}


class Answer(NamedTuple):
    """What was found, and why the dense vectors had no part in it, or not all of it."""

    found: list[Found]
    lacking: str | None


class VectorClient:
    """A running vector process. Every request may run beside others; all raise VectorProcessGone."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._last_words: deque[str] = deque(maxlen=_LAST_WORDS)
        self._listening = asyncio.create_task(self._listen(), name="vector-process-listen")
        self._overhearing = asyncio.create_task(self._overhear(), name="vector-process-stderr")
        self.vector_weight = 0.0

    @classmethod
    async def start(cls, settings: Settings) -> VectorClient:
        """Start the process and wait until it can be asked.

        Raises VectorProcessGone, and what hinders it: VectorStoreFailed, BrokerUnavailable, InvalidPayload.
        """
        paths = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "projections.vectors.process",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=child_environment(PYTHONPATH=os.pathsep.join(paths)),
        )
        client = cls(process)
        try:
            async with asyncio.timeout(_START_SECONDS):
                status = await client._exchange(0, settings_frame(settings))
        except BaseException:
            await client._end()
            raise
        client.vector_weight = status["vector_weight"]
        return client

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is there to be asked."""
        return self._process.returncode is None and not self._listening.done()

    async def answer(
        self,
        query: str,
        visible_scopes: Sequence[str],
        *,
        types: Sequence[str] = (),
        limit: int = 20,
        as_of: int | None = None,
        include_retired: bool = False,
        only: Only | None = None,
        paths: Paths = "fused",
    ) -> Answer:
        """Up to `limit` versions of each path, best keyword score first (see `port.VectorStore.search`).

        `paths` "keyword" asks with words alone, "vector" with the dense vector alone.
        """
        told = await self._ask(
            "search",
            query=query,
            visible_scopes=list(visible_scopes),
            types=list(types),
            limit=limit,
            as_of=as_of,
            include_retired=include_retired,
            only=only,
            paths=paths,
        )
        return Answer([Found(*row) for row in told["found"]], told["lacking"])

    async def index(self, changes: Sequence[Change], *, after: int, checkpoint: int) -> int:
        """Apply the changes of the events in (after, checkpoint]; returns the position then applied.

        When this returns the changes can be found; they are durable a little later, or after `flush`. Batches
        are applied in the order in which they are sent. Raises LogGap when a batch before this one is missing,
        VectorStoreFailed: feed again from the status's `applied`.
        """
        frames = [change_frame(change) for change in changes]
        position: int = await self._ask("index", changes=frames, after=after, checkpoint=checkpoint)
        return position

    async def examine(self, stores: Sequence[Store], *, searched: int) -> list[str]:
        """What is stored otherwise than these versions, in words; `searched` of them are also searched for."""
        frames = [change_frame(change) for change in stores]
        found: list[str] = await self._ask("examine", changes=frames, searched=searched)
        return found

    async def awaiting(self, most: int) -> list[Awaiting]:
        """Up to `most` versions that await their embedding."""
        return [Awaiting(*each) for each in await self._ask("awaiting", most=most)]

    async def embed(self, texts: Sequence[tuple[str, int, str, str]]) -> None:
        """Give versions (item, version, task, content) their dense vectors; a blank text gets none.

        Raises EmbeddingFailed, BrokerUnavailable, VectorStoreFailed.
        """
        await self._ask("embed", texts=[list(each) for each in texts])

    async def embeddings(self) -> dict[str, Any]:
        """`awaiting` versions, `trouble` with the queries' embeddings, `calls` paid, queries `missed`."""
        told: dict[str, Any] = await self._ask("embeddings")
        return told

    async def erase(self, item_ids: Sequence[str]) -> None:
        """Remove every version of these items."""
        await self._ask("erase", item_ids=list(item_ids))

    async def status(self) -> dict[str, Any]:
        """`checkpoint` (durable), `applied`, `count`, `pending` changes, `model`, `dimensions`, `paid_calls`."""
        status: dict[str, Any] = await self._ask("status")
        return status

    async def flush(self) -> int:
        """Make durable what is applied; returns that position."""
        position: int = await self._ask("flush")
        return position

    async def clear(self) -> int:
        """Remove everything; feed again from the start."""
        position: int = await self._ask("clear")
        return position

    async def optimize(self) -> bool:
        """Build search indexes; with Edge nothing else is answered meanwhile (1.8 s at 9,000 items)."""
        done: bool = await self._ask("optimize")
        return done

    async def digest(self) -> str:
        """The fingerprint of all points, to compare with a rebuild's."""
        digest: str = await self._ask("digest")
        return digest

    async def close(self) -> None:
        """Let the process make everything durable and end. Safe to call twice."""
        if self.running:
            with contextlib.suppress(VectorProcessGone):
                await self._ask("close")
        await self._end()

    async def wait(self) -> int:
        """Wait until the process ends, for whatever reason; returns its exit code."""
        return await self._process.wait()

    async def _ask(self, verb: str, **given: Any) -> Any:
        number = next(self._ids)
        return await self._exchange(number, {"id": number, "do": verb, **given})

    async def _exchange(self, number: int, frame: Frame) -> Any:
        if not self.running or self._process.stdin is None:
            raise self._gone()
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            self._process.stdin.write(pack(frame))
            await self._process.stdin.drain()
            return await answer
        except (ConnectionError, RuntimeError):  # uvloop's for a pipe whose other end has gone
            raise self._gone() from None
        finally:
            self._waiting.pop(number, None)

    async def _listen(self) -> None:
        stream = self._process.stdout
        try:
            while stream is not None and (frame := await receive(stream)) is not None:
                answer = self._waiting.get(frame["id"])
                if answer is None or answer.done():
                    continue  # whoever asked has gone
                if "error" in frame:
                    answer.set_exception(_error(frame["error"]))
                else:
                    answer.set_result(frame["ok"])
        finally:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(self._gone())
                    answer.exception()  # whoever waits still gets it; nobody must

    async def _overhear(self) -> None:
        stream = self._process.stderr
        while stream is not None and (line := await stream.readline()):
            words = line.decode(errors="replace").rstrip()
            self._last_words.append(words)
            log.warning("vector_process_says", line=words)

    async def _end(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        await asyncio.gather(self._listening, self._overhearing, return_exceptions=True)

    def _gone(self) -> VectorProcessGone:
        words = "\n".join(self._last_words)
        return VectorProcessGone(
            f"the vector process {self._process.pid} has ended (exit code {self._process.returncode}"
            f"{_BUS_ERROR if self._process.returncode == -_SIGBUS else ''}); start it "
            f"again and feed it from its checkpoint" + (f". Its last words:\n{words}" if words else "")
        )


def _error(fault: Frame) -> LedgerError:
    error = _ERRORS.get(fault["code"], ServiceFailed)(fault["message"])
    if isinstance(error, EmbeddingFailed):
        error.retry_after, error.refused, error.useless = fault["retry_after"], fault["refused"], fault["useless"]
    return error

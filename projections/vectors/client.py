"""Client of the vector process: starts it, and sends it requests from the node."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import structlog

from kledger.contract import errors
from kledger.contract.errors import LedgerError, ServiceFailed
from ledger.runtime.private import module_environment
from projections.vectors.changes import in_requests
from projections.vectors.errors import EmbeddingFailed, VectorProcessGone, VectorsDamaged, VectorStoreFailed
from projections.vectors.question import Searched
from projections.vectors.store.port import Awaiting, Found, SearchOptions
from projections.vectors.wire import Change, Frame, Paths, Settings, Store, Unpacked, change_frame, pack, settings_frame

log = structlog.get_logger(__name__)

START_SECONDS = 60.0
_END_SECONDS = 30.0
SILENT_SECONDS, SILENT_AT_LENGTH_SECONDS = 60.0, 1800.0
"""What answers nothing for so long, though it was asked, hangs; the second where it was asked for long work."""
_LOOK_SECONDS = 1.0
_AT_LENGTH = frozenset({"embed", "digest", "optimize", "flush", "clear", "close"})
_STDERR_LINES = 20
_READ_AT_ONCE = 1 << 16
_BUS_ERROR = ", a bus error: its disk is full"  # writing to a memory-mapped file on a full disk raises SIGBUS
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
    """The hits, and why dense vectors were not used for them, or not for all."""

    found: list[Found]
    lacking: str | None


async def spawned() -> asyncio.subprocess.Process:
    """A vector process that loads its modules and waits for its settings; it exits where its input ends first."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "projections.vectors.process",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=module_environment(),
    )


@asynccontextmanager
async def spare_process() -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that loads while its client cannot start yet; it has ended when the block has."""
    process = await spawned()
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


class VectorClient:
    """A running vector process. Requests may run concurrently; all raise VectorProcessGone."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._asked: dict[int, str] = {}
        self._silent = 0.0
        self._hung_for = 0.0
        self._stderr_lines: deque[str] = deque(maxlen=_STDERR_LINES)
        self._reading = asyncio.create_task(self._read_answers(), name="vector-process-listen")
        self._reading_stderr = asyncio.create_task(self._read_stderr(), name="vector-process-stderr")
        self._watching = asyncio.create_task(self._watch(), name="vector-process-silence")
        self.vector_weight = 0.0

    @classmethod
    async def start(cls, settings: Settings, spare: asyncio.subprocess.Process | None = None) -> VectorClient:
        """Start the process, or take the spare one where it still runs, and wait until it is ready.

        Raises VectorProcessGone, VectorStoreFailed, BrokerUnavailable, InvalidPayload.
        """
        process = spare if spare is not None and spare.returncode is None else await spawned()
        client = cls(process)
        try:
            async with asyncio.timeout(START_SECONDS):
                status = await client._exchange(0, settings_frame(settings))
        except BaseException as error:
            await client._end()
            if isinstance(error, TimeoutError):
                raise VectorProcessGone(f"the vector process was not ready within {START_SECONDS:g} s") from error
            raise
        client.vector_weight = status["vector_weight"]
        return client

    @property
    def pid(self) -> int:
        """The process's id."""
        return self._process.pid

    @property
    def running(self) -> bool:
        """Whether the process is running and its answers are read."""
        return self._process.returncode is None and not self._reading.done()

    async def answer(
        self,
        query: Searched,
        options: SearchOptions,
        paths: Paths = "fused",
        meanwhile: Callable[[], object] | None = None,
    ) -> Answer:
        """The best versions of each path, best keyword score first (see `port.VectorStore.search`).

        `paths` "keyword" searches by words only, "vector" by the dense vector only. `meanwhile` is called while the
        process searches.
        """
        number = next(self._ids)
        frame = {"id": number, "do": "search", "query": query, "options": options, "paths": paths}
        result = await self._exchange(number, frame, meanwhile)
        return Answer([Found(*row) for row in result["found"]], result["lacking"])

    async def index(self, changes: Sequence[Change], *, after: int, checkpoint: int) -> int:
        """Apply the changes of the events in (after, checkpoint]; returns the applied position.

        When this returns the changes are searchable; they are durable a little later, or after `flush`. Batches are
        applied in the order in which they are sent. Raises LogGap when an earlier batch is missing, VectorStoreFailed;
        then feed again from the status's `applied`.
        """
        frames = [change_frame(change) for change in changes]
        position: int = await self._ask("index", changes=frames, after=after, checkpoint=checkpoint)
        return position

    async def examine(self, stores: Sequence[Store], *, searched: int) -> list[str]:
        """Differences between the store and these versions, described; `searched` of them are also searched for."""
        differences: list[str] = []
        for part in in_requests(stores):
            frames = [change_frame(change) for change in part]
            differences += await self._ask("examine", changes=frames, searched=searched)
            searched = max(0, searched - len(part))
        return differences

    async def awaiting(self, most: int) -> list[Awaiting]:
        """Up to `most` versions that are not embedded yet."""
        return [Awaiting(*each) for each in await self._ask("awaiting", most=most)]

    async def embed(self, texts: Sequence[tuple[str, int, str, str]]) -> None:
        """Give versions (item, version, task, content) their dense vectors; a blank text gets none.

        Raises EmbeddingFailed, BrokerUnavailable, VectorStoreFailed.
        """
        await self._ask("embed", texts=[list(each) for each in texts])

    async def embeddings(self) -> dict[str, Any]:
        """`awaiting` versions, `trouble` with the queries' embeddings, `calls` paid, queries `missed`."""
        status: dict[str, Any] = await self._ask("embeddings")
        return status

    async def erase(self, item_ids: Sequence[str]) -> None:
        """Remove every version of these items."""
        await self._ask("erase", item_ids=list(item_ids))

    async def status(self) -> dict[str, Any]:
        """`checkpoint` (durable), `applied`, `count`, `pending` changes, `model`, `dimensions`, `paid_calls`."""
        status: dict[str, Any] = await self._ask("status")
        return status

    async def flush(self) -> int:
        """Make everything applied durable; returns that position."""
        position: int = await self._ask("flush")
        return position

    async def clear(self) -> int:
        """Remove everything; feed again from the start."""
        position: int = await self._ask("clear")
        return position

    async def optimize(self) -> bool:
        """Build search indexes; with Edge this blocks all other requests (1.8 s at 9,000 items)."""
        done: bool = await self._ask("optimize")
        return done

    async def digest(self) -> str:
        """The digest of all points, to compare with a rebuild's."""
        digest: str = await self._ask("digest")
        return digest

    async def close(self) -> None:
        """Let the process flush and exit; one that does not answer is killed after a while. Idempotent."""
        try:
            async with asyncio.timeout(_END_SECONDS):
                if self.running:
                    with contextlib.suppress(VectorProcessGone):
                        await self._ask("close")
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()
        await self._end()

    async def wait(self) -> int:
        """Wait until the process exits; returns its exit code."""
        return await self._process.wait()

    async def _ask(self, verb: str, **arguments: Any) -> Any:
        number = next(self._ids)
        return await self._exchange(number, {"id": number, "do": verb, **arguments})

    async def _exchange(self, number: int, frame: Frame, meanwhile: Callable[[], object] | None = None) -> Any:
        if not self.running or self._process.stdin is None:
            raise self._gone()
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        self._asked[number] = str(frame.get("do", "close"))  # settings are no request, and have a limit of their own
        try:
            self._process.stdin.write(pack(frame))
            await self._process.stdin.drain()
            if meanwhile is not None:
                meanwhile()
            return await answer
        except (ConnectionError, RuntimeError):  # uvloop raises RuntimeError for a closed pipe
            raise self._gone() from None
        finally:
            self._waiting.pop(number, None)
            self._asked.pop(number, None)

    async def _watch(self) -> None:
        """Kill a process that hangs, as one that is stopped or waits for its disk: whoever waits is told it has gone.

        What counts are looks, not a clock: a node that was itself stopped meanwhile has not read the answers yet.
        """
        while self.running:
            await asyncio.sleep(_LOOK_SECONDS)
            self._silent = self._silent + _LOOK_SECONDS if self._asked else 0.0
            at_length = not _AT_LENGTH.isdisjoint(self._asked.values())
            if self._silent >= (SILENT_AT_LENGTH_SECONDS if at_length else SILENT_SECONDS):
                log.error("the vector process hangs and is killed", asked=sorted(set(self._asked.values())))
                self._hung_for = self._silent
                with contextlib.suppress(ProcessLookupError):
                    self._process.kill()
                return

    async def _read_answers(self) -> None:
        stream, unpacked = self._process.stdout, Unpacked()
        try:
            while stream is not None and (data := await stream.read(_READ_AT_ONCE)):
                self._silent = 0.0
                for frame in unpacked.more(data):
                    self._take(frame)
        finally:
            for answer in self._waiting.values():
                if not answer.done():
                    answer.set_exception(self._gone())
                    answer.exception()  # marks it as retrieved: no warning where nobody awaits it

    def _take(self, frame: Frame) -> None:
        answer = self._waiting.get(frame["id"])
        if answer is None or answer.done():
            return  # the request was cancelled
        if "error" in frame:
            answer.set_exception(_error(frame["error"]))
        else:
            answer.set_result(frame["ok"])

    async def _read_stderr(self) -> None:
        stream = self._process.stderr
        assert stream is not None  # it is a pipe
        while not stream.at_eof():
            try:
                line = await stream.readline()
            except ValueError:  # a line longer than is kept: were nothing read any more, the process would wait for it
                continue
            if text := line.decode(errors="replace").rstrip():
                self._stderr_lines.append(text)
                log.warning("vector_process_says", line=text)

    async def _end(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            async with asyncio.timeout(_END_SECONDS):
                await self._process.wait()
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):  # it ended just now
                self._process.kill()
            await self._process.wait()
        self._watching.cancel()
        await asyncio.gather(self._reading, self._reading_stderr, self._watching, return_exceptions=True)

    def _gone(self) -> VectorProcessGone:
        if self._hung_for:
            return VectorProcessGone(
                f"the vector process {self._process.pid} answered nothing for {self._hung_for:g} s and was killed; "
                "start it again and feed it from its checkpoint"
            )
        stderr = "\n".join(self._stderr_lines)
        return VectorProcessGone(
            f"the vector process {self._process.pid} has ended (exit code {self._process.returncode}"
            f"{_BUS_ERROR if self._process.returncode == -signal.SIGBUS else ''}); start it "
            f"again and feed it from its checkpoint" + (f". Its last words:\n{stderr}" if stderr else "")
        )


def _error(fault: Frame) -> LedgerError:
    error = _ERRORS.get(fault["code"], ServiceFailed)(fault["message"])
    if isinstance(error, EmbeddingFailed):
        error.retry_after, error.refused, error.useless = fault["retry_after"], fault["refused"], fault["useless"]
    return error

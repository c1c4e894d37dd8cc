"""Vector feed: sends folded versions from the view to the vector process, by position, and resumes after any failure.

The feed queries the view for changes after the position that the vectors have applied, sends them, and waits for the
view to move on. The vector process reports its position, so that after a crash it is restarted and fed from there.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import duckdb
import structlog

from kledger.contract.errors import LedgerError, ViewBehind
from ledger.runtime.log_once import Outage
from projections.engine.view import View
from projections.vectors.backlog import Backlog
from projections.vectors.canary import Canary
from projections.vectors.changes import changes_after
from projections.vectors.client import Answer, VectorClient
from projections.vectors.embedding.hashed import DIMENSIONS, MODEL
from projections.vectors.errors import VectorProcessGone, VectorStoreFailed
from projections.vectors.store.directories import model_slug, read_checkpoint, replace_file
from projections.vectors.store.port import SearchOptions
from projections.vectors.wire import Paths, Settings, Store

log = structlog.get_logger(__name__)

# Changes in one request; the process applies them in slices of milliseconds.
CHANGES = 500
_LONGEST_PAUSE = 5.0
# The longest delay of a change that nobody waits for, so that several go in one request.
_GATHER_SECONDS = 0.1
_RESTART_PATIENCE = 10.0
# What the process has not answered by then it does not answer: it hangs, or its disk does.
_ANSWER_PATIENCE = 20.0
# How often a standby node polls the position of the vectors.
_LOOK_SECONDS = 0.1


class VectorFeed:
    """Manages a node's vector process: starts, feeds and restarts it, and sends it searches."""

    def __init__(
        self, view: View, settings: Settings, org: str, *, may_write: Callable[[], bool] = lambda: True
    ) -> None:
        self._view = view
        self._may_write = may_write
        self._settings = settings
        self.org = org
        self._client: VectorClient | None = None
        self._watching: asyncio.Task[None] | None = None
        self._starting: asyncio.Task[None] | None = None
        self._reset_marker = Path(settings.directory or ".") / "begin-anew"
        self._awaited = 0
        self._hurry = asyncio.Event()
        self.turn = asyncio.Lock()
        """Held while changes are being sent; its holder may replace the process."""
        self.applied = 0
        self._answered_from = 0  # the highest position that searches have seen; after a restart they wait for it
        self._begun = 0  # last position of the changes being sent: searches may have seen some of them
        self._outage = Outage("feeding the vectors pauses", "feeding the vectors goes on", log)
        self.trouble: LedgerError | None = None
        """Why the vectors do not move at present; None while they do."""
        self.backlog = Backlog(view, org, self._running, may_write)
        """Embeds indexed versions, where a model is configured."""
        self.canary = Canary(self, view)
        """Checks samples of the vectors against the view."""
        self.ending: Callable[[], bool] = lambda: False
        """Whether the node is stopping: then a process that has exited is not restarted."""
        self.spare: asyncio.subprocess.Process | None = None
        """A process without settings, which the first start takes."""
        self.fed: Callable[[int, int], Awaitable[None]] | None = None
        """Called with each (after, upto) whose changes have become searchable."""

    @property
    def settings(self) -> Settings:
        """The settings of the process."""
        return self._settings

    @property
    def client(self) -> VectorClient:
        """The running process. Raises VectorProcessGone."""
        return self._running()

    @property
    def comes(self) -> bool:
        """Whether this node is feeding the vectors: it may write them, and there is no error."""
        return self.trouble is None and self._may_write()

    @property
    def model(self) -> str:
        """The model that makes the vectors, with their size."""
        embedding = self._settings.embedding
        return f"{MODEL}/{DIMENSIONS}" if embedding is None else f"{embedding.model}/{embedding.dimensions}"

    @property
    def embedded(self) -> int:
        """Batches of versions that this node has given their vectors of a model since it started."""
        return self.backlog.embedded

    @property
    def whole(self) -> bool:
        """Whether this node knows when a vector changes: with a model, it has to be the one that embeds."""
        return self._settings.embedding is None or self.comes

    @property
    def vector_weight(self) -> float:
        """Weight of this model's cosine relative to the best keyword score."""
        return self._client.vector_weight if self._client else 0.0

    def begin_within(self, head: int) -> None:
        """Begin to start the process for a log that ends at `head`.

        Vectors that go beyond it are made anew: what comes at their positions would be taken for applied. So are those
        that do not say how far they go.
        """
        try:
            applied = _loaded_before(self._settings)
        except VectorStoreFailed as error:
            self._discard(reason=error.message)
        else:
            if applied > head:
                self._discard(reason="they go beyond the log", applied=applied, head=head)
            elif head and not applied:  # as after an upgrade
                log.info("the vectors are made from the log", head=head)
        self.begin()

    def _discard(self, **about: object) -> None:
        log.warning("the vectors are made anew", **about)
        self.will_begin_anew()  # also where this start is cut
        shutil.rmtree(_folder(self._settings))

    def begin(self) -> None:
        """Begin to start the process; `start` waits for it."""
        self.applied = _loaded_before(self._settings)
        self._starting = asyncio.create_task(self._start(), name="vector-process-start")

    async def start(self) -> None:
        """Return once the process runs. Raises its error, unless there are vectors on disk: then `run` reports it.

        In that case it does not wait: loading 140,000 points takes two seconds, and only searches need them.
        """
        if self._starting is None:
            self.begin()
        if not self.applied:
            await self._started()

    async def _started(self) -> None:
        starting, self._starting = self._starting, None
        if starting is not None:
            await starting

    async def _start(self) -> None:
        settings = self._settings
        spare, self.spare = self.spare, None
        client = await VectorClient.start(settings, spare)
        try:
            applied = int((await client.status())["applied"])
        except BaseException:
            await client.close()
            raise
        if settings is not self._settings:  # another process took over meanwhile
            await client.close()
            return
        self._client, self.applied = client, applied  # together, so that a search sees matching values
        self._watching = asyncio.create_task(self._notify_on_exit(client), name="vector-process-watch")
        await self._view.moved()

    async def run(self) -> None:
        """Feed until cancelled."""
        background = [asyncio.create_task(self.canary.run(), name="vector-canary")]
        if self._settings.embedding is not None:
            background.append(asyncio.create_task(self.backlog.run(), name="embedding-backlog"))
        try:
            await self._run()
        finally:
            for task in background:
                task.cancel()
            await asyncio.gather(*background, return_exceptions=True)

    async def _run(self) -> None:
        pause = 0.05
        while True:
            try:
                await self._started()
                if self._client is None or not self._client.running:
                    if self.ending():
                        return
                    await self._restart()
                if not self._may_write():
                    await self._stand_by()
                elif self._reset_marker.exists():
                    await self.begin_anew()
                else:
                    await self._feed()
                self.trouble, pause = None, 0.05
                self._outage.over(applied=self.applied)
            except (LedgerError, duckdb.Error) as error:
                self.trouble = error if isinstance(error, LedgerError) else LedgerError(str(error))
                self._outage.met(self.trouble.message, applied=self.applied)
                await self._view.moved()
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
                await self._refresh_applied()

    def will_begin_anew(self) -> None:
        """Mark the vectors for a reset, as their view is about to be replaced; the mark survives a crash."""
        self._reset_marker.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self._reset_marker, "")

    async def begin_anew(self) -> None:
        """Remove all vectors and feed them again from the start of the view, if they are marked for it.

        Searches wait meanwhile. A standby node only removes its mark: the writing node resets them when it is rebuilt.
        """
        if not self._may_write():
            self._reset_marker.unlink(missing_ok=True)
            return
        async with self.turn:  # an examination meanwhile would report missing points
            if self._reset_marker.exists():  # else they were reset while this waited for the lock
                with contextlib.suppress(VectorProcessGone):  # the next process resets them
                    self.applied = await self._running().clear()
                    self._reset_marker.unlink(missing_ok=True)
                    self.canary.damage = None
        await self._view.moved()

    async def _feed(self) -> None:
        client = self._running()
        if self._view.position <= self.applied:
            # A start that ran while `replace` installed another process may have failed: its error is obsolete.
            self.trouble = None
            self._outage.over(applied=self.applied)
            await self._view.until(lambda: self._view.position > self.applied or not client.running)
            return
        if not self._awaited and self._view.position - self.applied < CHANGES:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_GATHER_SECONDS):
                    await self._hurry.wait()
        async with self.turn:
            if client is not self._client:
                return
            changes, upto = await self._view.ask(changes_after, self.org, self.applied, CHANGES)
            if not self._may_write():
                return
            after, self._begun = self.applied, upto
            self.applied = await client.index(changes, after=after, checkpoint=upto)
            if changes and self._settings.embedding is not None:
                self.backlog.came(sum(isinstance(change, Store) for change in changes))
            if changes and self.fed is not None:
                await self.fed(after, self.applied)
        self._answered_from = max(self._answered_from, self.applied)
        await self._view.moved()

    async def replace(self, client: VectorClient, settings: Settings, applied: int) -> None:
        """Switch to another process, which is at position `applied`, and close the old one. The caller holds `turn`."""
        old, self._settings = self._client, settings
        self.canary.damage = self.trouble = None
        self._client, self.applied = client, applied
        self._answered_from, self._begun = min(self._answered_from, applied), min(self._begun, applied)
        if self._watching is not None:
            self._watching.cancel()
        self._watching = asyncio.create_task(self._notify_on_exit(client), name="vector-process-watch")
        await self._view.moved()
        if old is not None:
            with contextlib.suppress(VectorProcessGone):
                await old.close()

    async def _stand_by(self) -> None:
        """Another node writes: poll the applied position, more often while a reader waits for one."""
        before = self.applied
        self.applied = int((await self._running().status())["applied"])
        self._answered_from = max(self._answered_from, self.applied)
        if self.applied != before:
            await self._view.moved()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_SECONDS if self._awaited else _GATHER_SECONDS * 5):
                await asyncio.sleep(_LOOK_SECONDS) if self._awaited else await self._hurry.wait()

    async def _restart(self) -> None:
        if self._client is not None:
            with contextlib.suppress(VectorProcessGone):
                await self._client.close()
            log.warning("the vector process is started again")
            self._answered_from = max(self._answered_from, self._begun)
        await self._start()

    async def _notify_on_exit(self, client: VectorClient) -> None:
        await client.wait()
        await self._view.moved()

    async def _refresh_applied(self) -> None:
        with contextlib.suppress(LedgerError):
            self.applied = int((await self._running().status())["applied"])

    def _running(self) -> VectorClient:
        if self._client is None:
            raise VectorProcessGone("the vector process is not started yet")
        return self._client

    async def search(
        self, query: str, options: SearchOptions, paths: Paths, meanwhile: Callable[[], None] | None = None
    ) -> Answer:
        """See VectorClient.answer; waits up to a limit while the process restarts.

        A restarted process may have lost what was not durable: until it has been fed that again, an answer would lack
        results that earlier ones had. Raises ViewBehind when that takes too long, or the process does not answer.
        """
        failed: VectorClient | None = None
        while True:
            client = await self._until_whole(failed)
            try:
                async with asyncio.timeout(_ANSWER_PATIENCE):
                    return await client.answer(query, options, paths, meanwhile)
            except VectorProcessGone:
                if failed is not None:
                    raise
                failed = client
            except TimeoutError as error:
                raise ViewBehind(
                    f"the vector process does not answer a search for {_ANSWER_PATIENCE:g} s: try again, or see what "
                    "kledger status says of it",
                    position=self.applied,
                ) from error

    async def _until_whole(self, failed: VectorClient | None) -> VectorClient:
        """The process, once it is another one than `failed` and has everything that earlier searches saw."""

        def whole() -> bool:
            client = self._client
            return (
                client is not None and client is not failed and client.running and self.applied >= self._answered_from
            )

        if not whole():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_RESTART_PATIENCE):
                    await self._view.until(whole)
        if not whole():
            raise ViewBehind(
                f"the vector process is started and is at position {self.applied}, searches had "
                f"{self._answered_from}: try again, or see what kledger status says of the lag",
                position=self.applied,
            )
        return self._running()

    async def until_started(self, within: float) -> None:
        """Return once the process runs; a node does not wait for it where vectors are on disk, or after its end.

        Raises VectorProcessGone where it does not come within so many seconds.
        """

        def running() -> bool:
            return self.trouble is not None or (self._client is not None and self._client.running)

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._view.until(running)
        self._running()

    async def status(self) -> dict[str, Any]:
        return await self._running().status()

    async def wait_for(self, position: int, timeout: float) -> None:
        """Return once the vectors have applied `position`. Raises ViewBehind."""
        if self.applied >= position:
            return
        self._awaited += 1
        self._hurry.set()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._view.until(lambda: self.applied >= position)
        finally:
            self._awaited -= 1
            if not self._awaited:
                self._hurry.clear()
        if self.applied < position:
            raise ViewBehind(
                f"the vectors are at position {self.applied}, {position} was asked for and did not come within "
                f"{timeout:g} s: try again, or see what kledger status says of the lag",
                position=self.applied,
            )

    async def close(self) -> None:
        """Let the process flush and exit."""
        with contextlib.suppress(LedgerError):
            await self._started()
        if self._watching is not None:
            self._watching.cancel()
        if self._client is not None:
            with contextlib.suppress(VectorProcessGone):
                await self._client.close()


def _loaded_before(settings: Settings) -> int:
    """The checkpoint of Edge's files on disk; 0 where there are none, and for a Qdrant server."""
    if settings.qdrant_url is not None or settings.directory is None:
        return 0
    return read_checkpoint(_folder(settings))


def _folder(settings: Settings) -> Path:
    """Where Edge's files of the model are."""
    embedding = settings.embedding
    model = (MODEL, DIMENSIONS) if embedding is None else (embedding.model, embedding.dimensions)
    return Path(settings.directory or ".") / model_slug(*model)

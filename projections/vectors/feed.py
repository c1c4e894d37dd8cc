"""Vector feed: sends folded versions from the view to the vector process, by position, and resumes after any failure.

The feed queries the view for changes after the position that the vectors have applied, sends them, and waits for the
view to move on. The vector process reports its position, so that after a crash it is restarted and fed from there.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import duckdb
import structlog

from kledger.contract.errors import LedgerError, ViewBehind
from ledger.runtime.log_once import Outage
from projections.live.view import View
from projections.vectors.changes import changes_after
from projections.vectors.client import Answer, VectorClient
from projections.vectors.embedding.backlog import Backlog
from projections.vectors.embedding.hashed import DIMENSIONS, MODEL
from projections.vectors.errors import VectorProcessGone
from projections.vectors.soundness import Canary
from projections.vectors.store.directories import model_slug, read_checkpoint, replace_file
from projections.vectors.store.port import Only
from projections.vectors.wire import Paths, Settings

log = structlog.get_logger(__name__)

# Changes in one request; the process works them off in slices of milliseconds.
CHANGES = 500
_LONGEST_PAUSE = 5.0
# Unless somebody waits for it, a change may rest for this long, so that several go in one request.
_GATHER_SECONDS = 0.1
_RESTART_PATIENCE = 10.0
# How often a node that does not write looks how far the one is that does.
_LOOK_SECONDS = 0.1


class VectorFeed:
    """The vector process of a node: started, fed, restarted, asked."""

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
        self._anew = Path(settings.directory or ".") / "begin-anew"
        self._awaited = 0
        self._hurry = asyncio.Event()
        self.turn = asyncio.Lock()
        """Held while changes are on their way; whoever holds it may replace the process."""
        self.applied = 0
        self._answered_from = 0  # the furthest position that searches had; after a restart they wait for it
        self._begun = 0  # how far the changes go that are on their way: searches may have had some of them
        self._outage = Outage("feeding the vectors pauses", "feeding the vectors goes on", log)
        self.trouble: LedgerError | None = None
        """Why the vectors do not move at present; None while they do."""
        self.backlog = Backlog(view, org, self._running, may_write)
        """Embeds what is indexed already, where there is a model."""
        self.canary = Canary(self, view)
        """Looks whether the vectors hold what the view says."""
        self.ending: Callable[[], bool] = lambda: False
        """Whether the node stops: then a process that is gone is not started again."""
        self.fed: Callable[[int, int], Awaitable[None]] | None = None
        """Told of each (after, upto) whose changes can be searched from now on."""

    @property
    def settings(self) -> Settings:
        """What the process was started with."""
        return self._settings

    @property
    def client(self) -> VectorClient:
        """The running process. Raises VectorProcessGone."""
        return self._running()

    @property
    def comes(self) -> bool:
        """Whether this node brings the vectors to where its view is: it writes them, and nothing hinders it."""
        return self.trouble is None and self._may_write()

    @property
    def vector_weight(self) -> float:
        """What a cosine of this model counts beside the best keyword score."""
        return self._client.vector_weight if self._client else 0.0

    async def start(self) -> None:
        """Start the process. Raises what hinders it, unless it has worked here before: then `run` says so.

        Loading 140,000 points takes two seconds, in which a node can do everything but search: searches wait for it.
        """
        self.applied = _loaded_before(self._settings)
        self._starting = asyncio.create_task(self._start(), name="vector-process-start")
        if not self.applied:
            await self._started()

    async def _started(self) -> None:
        starting, self._starting = self._starting, None
        if starting is not None:
            await starting

    async def _start(self) -> None:
        settings = self._settings
        client = await VectorClient.start(settings)
        if settings is not self._settings:  # another process took over meanwhile
            await client.close()
            return
        try:
            applied = int((await client.status())["applied"])
        except BaseException:
            await client.close()
            raise
        self._client, self.applied = client, applied  # both at once: a search must not take the one for the other's
        self._watching = asyncio.create_task(self._tell_when_gone(client), name="vector-process-watch")
        await self._view.moved()

    async def run(self) -> None:
        """Feed until cancelled."""
        beside = [asyncio.create_task(self.canary.run(), name="vector-canary")]
        if self._settings.embedding is not None:
            beside.append(asyncio.create_task(self.backlog.run(), name="embedding-backlog"))
        try:
            await self._run()
        finally:
            for task in beside:
                task.cancel()
            await asyncio.gather(*beside, return_exceptions=True)

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
                elif self._anew.exists():
                    await self.begin_anew()
                else:
                    await self._feed()
                self.trouble, pause = None, 0.05
                self._outage.over(applied=self.applied)
            except (LedgerError, duckdb.Error) as error:
                self.trouble = error if isinstance(error, LedgerError) else LedgerError(str(error))
                self._outage.met(self.trouble.message, applied=self.applied)
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
                await self._ask_how_far()

    def will_begin_anew(self) -> None:
        """Note that the vectors follow from a view that is about to go: they are made anew, also after a crash."""
        self._anew.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self._anew, "")

    async def begin_anew(self) -> None:
        """Remove all vectors and feed them from the start of the view as it is now.

        Searches wait for them meanwhile. Where another node writes them, that one sees to it as it is rebuilt.
        """
        if not self._may_write():
            self._anew.unlink(missing_ok=True)
            return
        async with self.turn:  # what is examined meanwhile would be missed
            if self._anew.exists():  # else they began anew while this waited for its turn
                with contextlib.suppress(VectorProcessGone):  # the next one begins anew
                    self.applied = await self._running().clear()
                    self._anew.unlink(missing_ok=True)
                    self.canary.damage = None
        await self._view.moved()

    async def _feed(self) -> None:
        client = self._running()
        if self._view.position <= self.applied:
            # A start that was under way while another process took the place may have failed since: that is over.
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
            if changes:
                self.backlog.more.set()
            if changes and self.fed is not None:
                await self.fed(after, self.applied)
        self._answered_from = max(self._answered_from, self.applied)
        await self._view.moved()

    async def replace(self, client: VectorClient, settings: Settings, applied: int) -> None:
        """Answer from another process from now on, which is at position `applied`; end the one before.

        The caller holds `turn`.
        """
        old, self._settings = self._client, settings
        self.canary.damage = self.trouble = None
        self._client, self.applied = client, applied
        self._answered_from, self._begun = min(self._answered_from, applied), min(self._begun, applied)
        if self._watching is not None:
            self._watching.cancel()
        self._watching = asyncio.create_task(self._tell_when_gone(client), name="vector-process-watch")
        await self._view.moved()
        if old is not None:
            with contextlib.suppress(VectorProcessGone):
                await old.close()

    async def _stand_by(self) -> None:
        """Another node writes: see how far it is, often while somebody waits for it."""
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

    async def _tell_when_gone(self, client: VectorClient) -> None:
        await client.wait()
        await self._view.moved()

    async def _ask_how_far(self) -> None:
        with contextlib.suppress(LedgerError):
            self.applied = int((await self._running().status())["applied"])

    def _running(self) -> VectorClient:
        if self._client is None:
            raise VectorProcessGone("the vector process is not started yet")
        return self._client

    async def search(
        self,
        query: str,
        visible_scopes: list[str],
        *,
        types: list[str],
        limit: int,
        as_of: int | None,
        only: Only,
        paths: Paths,
    ) -> Answer:
        """See VectorClient.answer; waits while the process is started again, for a while.

        A process that was started again may have lost what it had not made durable: until it was fed that again,
        an answer would lack what earlier ones had. Raises ViewBehind when that takes too long.
        """
        failed: VectorClient | None = None
        while True:
            client = await self._until_whole(failed)
            try:
                return await client.answer(
                    query, visible_scopes, types=types, limit=limit, as_of=as_of, only=only, paths=paths
                )
            except VectorProcessGone:
                if failed is not None:
                    raise
                failed = client

    async def _until_whole(self, failed: VectorClient | None) -> VectorClient:
        """The process, once it is another one than `failed` and has all that searches had before."""

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

    async def status(self) -> dict[str, Any]:
        """What VectorClient.status says."""
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
        """Let the process make everything durable and end."""
        with contextlib.suppress(LedgerError):
            await self._started()
        if self._watching is not None:
            self._watching.cancel()
        if self._client is not None:
            with contextlib.suppress(VectorProcessGone):
                await self._client.close()


def _loaded_before(settings: Settings) -> int:
    """The position that an engine of our own has on disk, 0 where there is none yet or it is a server's."""
    if settings.qdrant_url is not None or settings.directory is None:
        return 0
    wanted = settings.embedding
    named = (MODEL, DIMENSIONS) if wanted is None else (wanted.model, wanted.dimensions)
    return read_checkpoint(Path(settings.directory) / model_slug(*named))

"""Vector feed: sends folded versions from the view to the vector process, by position, and resumes after any failure.

The feed queries the view for changes after the position that the vectors have applied, sends them, and waits for the
view to move on. The vector process reports its position, so that after a crash it is restarted and fed from there.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any

import duckdb
import structlog

from kledger.contract.errors import LedgerError, ViewBehind
from ledger.runtime.log_once import Outage
from projections.engine.view import View
from projections.vectors.backlog import Backlog
from projections.vectors.canary import Canary
from projections.vectors.changes import changes_after
from projections.vectors.client import VectorClient
from projections.vectors.errors import VectorProcessGone
from projections.vectors.on_disk import (
    applied_before,
    are_any,
    carry_mark,
    discard_unused,
    keep_within,
    mark_for_reset,
    mark_of,
    model_of,
)
from projections.vectors.searches import Searches
from projections.vectors.wire import Settings, Store

log = structlog.get_logger(__name__)

# Changes in one request; the process applies them in slices of milliseconds.
CHANGES = 500
_LONGEST_PAUSE = 5.0
# The longest delay of a change that nobody waits for, so that several go in one request.
_GATHER_SECONDS = 0.1
# How often a standby node polls the position of the vectors.
_LOOK_SECONDS = 0.1


class VectorFeed:
    """Manages a node's vector process: starts, feeds and restarts it."""

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
        self._awaited = 0
        self._hurry = asyncio.Event()
        self.turn = asyncio.Lock()
        """Held while changes are being sent; its holder may replace the process."""
        self.applied = 0
        self.from_before = False
        """Whether vectors on disk are from before this start: another view may have had what they have."""
        self._outage = Outage("feeding the vectors pauses", "feeding the vectors goes on", log)
        self.trouble: LedgerError | None = None
        """Why the vectors do not move at present; None while they do."""
        self.searches = Searches(self, view)
        """Sends searches to the process."""
        self.backlog = Backlog(view, org, lambda: self._client, may_write)
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
        """The process. Raises VectorProcessGone where it has not started yet."""
        if self._client is None:
            raise VectorProcessGone("the vector process is not started yet")
        return self._client

    @property
    def running(self) -> VectorClient | None:
        """The process, while it runs."""
        return self._client if self._client is not None and self._client.running else None

    @property
    def comes(self) -> bool:
        """Whether this node is feeding the vectors: it may write them, and there is no error."""
        return self.trouble is None and self._may_write()

    @property
    def model(self) -> str:
        """The model that makes the vectors, with their size."""
        return "{}/{}".format(*model_of(self._settings))

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
        """Begin to start the process for a log that ends at `head`, without vectors that go beyond it."""
        keep_within(self._settings, head)
        self.from_before = are_any(self._settings)
        self.begin()

    def begin(self) -> None:
        """Begin to start the process; `start` waits for it."""
        self.applied = applied_before(self._settings)
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
        await self._take(client, applied)

    async def _take(self, client: VectorClient, applied: int) -> None:
        """Have this process from now on; its position with it, so that a search sees matching values."""
        if self._watching is not None:
            self._watching.cancel()
        self._client, self.applied = client, applied
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
                if self.running is None:
                    if self.ending():
                        return
                    await self._restart()
                if not self._may_write():
                    await self._stand_by()
                elif mark_of(self._settings).exists():
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
        mark_for_reset(self._settings)

    async def begin_anew(self) -> None:
        """Remove all vectors, of every model, and feed them again from the start of the view, if marked for it.

        Searches wait meanwhile. A standby node only removes its mark: the writing node resets them when it is rebuilt.
        """
        if not self._may_write():
            mark_of(self._settings).unlink(missing_ok=True)
            return
        async with self.turn:  # an examination meanwhile would report missing points
            mark = mark_of(self._settings)
            if mark.exists():  # else they were reset while this waited for the lock
                with contextlib.suppress(VectorProcessGone):  # the next process resets them
                    self.applied = await self.client.clear()
                    await asyncio.to_thread(discard_unused, self._settings)
                    self.from_before = False
                    mark.unlink(missing_ok=True)
                    self.canary.damage = None
        await self._view.moved()

    async def _feed(self) -> None:
        client = self.client
        if self._view.position <= self.applied:
            # A start that ran while `replace` installed another process may have failed: its error is obsolete.
            self.trouble = None
            self._outage.over(applied=self.applied)
            await self._view.until(lambda: self._view.position > self.applied or not client.running)
            return
        if not self._awaited and self._view.position - self.applied < CHANGES:
            await self._unless_hurried(_GATHER_SECONDS)
        async with self.turn:
            if client is not self._client:
                return
            changes, upto = await self._view.ask(changes_after, self.org, self.applied, CHANGES)
            if not self._may_write():
                return
            after = self.applied
            self.searches.will_see(upto)
            self.applied = await client.index(changes, after=after, checkpoint=upto)
            if changes and self._settings.embedding is not None:
                self.backlog.came(sum(isinstance(change, Store) for change in changes))
            if changes and self.fed is not None:
                await self.fed(after, self.applied)
        self.searches.see(self.applied)
        await self._view.moved()

    async def replace(self, client: VectorClient, settings: Settings, applied: int) -> None:
        """Switch to another process, which is at position `applied`, and close the old one. The caller holds `turn`."""
        carry_mark(self._settings, settings)
        mark_of(self._settings).unlink(missing_ok=True)
        old, self._settings = self._client, settings
        self.canary.damage = self.trouble = None
        self.from_before = False
        self.searches.see_another(applied)
        await self._take(client, applied)
        if old is not None:
            with contextlib.suppress(VectorProcessGone):
                await old.close()

    async def _stand_by(self) -> None:
        """Another node writes: poll the applied position, more often while a reader waits for one."""
        before = self.applied
        self.applied = int((await self.client.status())["applied"])
        self.searches.see(self.applied)
        if self.applied != before:
            await self._view.moved()
        if self._awaited:
            await asyncio.sleep(_LOOK_SECONDS)
        else:
            await self._unless_hurried(_GATHER_SECONDS * 5)

    async def _unless_hurried(self, seconds: float) -> None:
        """Wait so long, or until somebody waits for a position."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._hurry.wait()

    async def _restart(self) -> None:
        if self._client is not None:
            with contextlib.suppress(VectorProcessGone):
                await self._client.close()
            log.warning("the vector process is started again")
            self.searches.lose()
        await self._start()

    async def _notify_on_exit(self, client: VectorClient) -> None:
        await client.wait()
        await self._view.moved()

    async def _refresh_applied(self) -> None:
        with contextlib.suppress(LedgerError):
            self.applied = int((await self.client.status())["applied"])

    async def until_started(self, within: float) -> None:
        """Return once the process runs; a node does not wait for it where vectors are on disk, or after its end.

        Raises VectorProcessGone where it does not come within so many seconds.
        """

        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._view.until(lambda: self.trouble is not None or self.running is not None)
        _ = self.client

    async def status(self) -> dict[str, Any]:
        return await self.client.status()

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

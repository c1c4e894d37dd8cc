"""Rebuilds of a node: the log folded from zero beside the live view, to compare, to serve, or into a file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path

from kledger.contract.errors import LedgerError, LogGap, LogReplaced, ServiceFailed
from ledger.broker.access import BrokerAccess
from ledger.event import JsonObject
from ledger.integrity.found import Found
from ledger.progress import Progress
from ledger.runtime.whole_file import in_place
from ledger.store.jetstream import JetStreamLedger
from ledger.store.parked import Parked, ParkedEvents
from producers.node.archiving import Archiving
from producers.node.comparison import compared_with
from producers.node.integrity import Integrity
from projections.engine.same_log import check_same_log
from projections.engine.view import Instance, View
from projections.live.catch_up import catch_up
from projections.live.files import discard, live_file, next_file, point_to
from projections.live.projector import Projector
from projections.live.rebuild import Rebuilt, position_at, rebuild_in_own_process
from projections.live.view_file import LiveFiles
from projections.vectors.feed import VectorFeed
from projections.vectors.renewal import mended
from projections.vectors.soundness import sound

Comparing = Callable[[], Awaitable[JsonObject]]


async def _as_it_is(compare: Comparing) -> JsonObject:
    return await compare()


@dataclass(slots=True)
class Rebuilds:
    """Folds the log of one node again."""

    access: BrokerAccess
    ledger: JetStreamLedger
    view: View
    projector: Projector
    feed: VectorFeed
    files: LiveFiles
    data: Path
    integrity: Integrity
    parked: ParkedEvents
    archiving: Archiving
    master: bytes = field(repr=False)
    """The master key of the vault."""
    beside: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by a job that builds a file beside the live one: two would use the same name, and both would swap."""
    undisturbed: Callable[[Comparing], Awaitable[JsonObject]] = _as_it_is
    """Makes a comparison again where a person was forgotten meanwhile (producers.node.eraser)."""

    async def rebuild(self, progress: Progress, *, release: int | None = None) -> JsonObject:
        """Fold the whole log and swap; the parked event at `release` is folded like any other."""
        result = await self.undisturbed(partial(self._rebuild, progress, release))
        if result["swapped"]:
            self.integrity.note("views", None)
        return await self.integrity.certified("rebuild", result, self.files.recall_days)

    async def _rebuild(self, progress: Progress, release: int | None) -> JsonObject:
        async with self.beside, self._vectors_beside() as vectors:
            fresh_view = self.fresh_view(progress, await self.decided(release), of_any_log=True)
            async with fresh_view as (fresh, rebuilt):
                comparison = await compared_with(self.view.instance, fresh, rebuilt)
                async with self.feed.turn:  # the vectors restart after the view has its file, not before
                    if not comparison["equal"]:  # the vectors were built from a view that differs from the log
                        self.feed.will_begin_anew()
                    if release is not None and release in self.parked.parked:
                        await self.parked.decide(release, "released")
                    await self.serve(fresh)
                if not comparison["equal"]:
                    await self.feed.begin_anew()
            swapped = live_file(self.data / "views") == fresh.path
            if comparison["equal"]:
                comparison["vectors"] = await mended(self.feed, self.view, self.data / "vectors", await vectors)
        return {**comparison, "swapped": swapped}

    async def verify(self, progress: Progress, *, from_log: bool = False) -> JsonObject:
        """Fold from zero into a file of its own, and compare it with the live view.

        With `from_log` nothing of the archive is read.
        """
        result = await self.undisturbed(partial(self._verify, progress, from_log))
        wrong = [f"the view {each['view']}" for each in result["views"] if not each["equal"]]
        if self.feed.canary.damage is not None:
            wrong.append("the vectors")
        if wrong:
            what = f"not what the log makes: {', '.join(wrong)}"
            self.integrity.note("views", Found("verify", "views", what, "kledger rebuild makes them anew"))
        elif result["equal"]:
            self.integrity.note("views", None)
        return result

    async def _verify(self, progress: Progress, from_log: bool) -> JsonObject:
        async with self.beside, self._vectors_beside() as vectors:
            fresh_view = self.fresh_view(progress, await self.decided(), from_log=from_log)
            async with fresh_view as (fresh, rebuilt):
                comparison = await compared_with(self.view.instance, fresh, rebuilt)
            of_vectors = await vectors
            return {**comparison, "vectors": of_vectors, "equal": comparison["equal"] and of_vectors["equal"]}

    @asynccontextmanager
    async def _vectors_beside(self) -> AsyncIterator[asyncio.Task[JsonObject]]:
        """Compare the vectors with the live view while another process folds: each takes seconds on one core."""
        comparing = asyncio.create_task(sound(self.feed, self.view), name="vectors-compared")
        try:
            yield comparing
        finally:
            comparing.cancel()
            await asyncio.gather(comparing, return_exceptions=True)

    @asynccontextmanager
    async def fresh_view(
        self, progress: Progress, parked: Parked, *, from_log: bool = False, of_any_log: bool = False
    ) -> AsyncIterator[tuple[Instance, Rebuilt]]:
        """A view folded from zero into its own file, at the position of the live view, which is paused meanwhile.

        The file is removed unless the body serves it. The caller holds `beside`. Raises LogReplaced or LogGap where
        the live view is of another log, or, with `of_any_log`, leaves it where it is: it would be of both logs then.
        """
        path = next_file(self.data / "views")
        days = self.files.recall_days
        rebuilt = await self._in_own_process(path, None, progress, parked, from_log=from_log, recall_days=days)
        fresh = self.files.open_rebuilt(path)
        try:
            async with self.projector.paused():
                another = await self._another_log()
                if another is not None and not of_any_log:
                    raise another
                if another is None:
                    if self.view.position < rebuilt.position and not self.view.instance.damage:
                        await catch_up(self.ledger, self.view, rebuilt.position, parked=await self.decided())
                    if self.view.position > rebuilt.position:
                        await catch_up(self.ledger, View(fresh), self.view.position, parked=parked)
                yield fresh, rebuilt
        finally:
            if self.view.instance is not fresh:
                fresh.close()
                discard(path)

    async def _another_log(self) -> LedgerError | None:
        """Why the live view is not of this log, which may end before it; None where it is."""
        try:
            await check_same_log(self.ledger, self.view)
        except (LogGap, LogReplaced) as error:
            return error
        except ServiceFailed:
            if not self.view.instance.damage:
                raise
        return None

    async def _in_own_process(
        self,
        path: Path,
        to: int | None,
        progress: Progress,
        parked: Parked,
        *,
        from_log: bool = False,
        recall_days: int | None = None,
    ) -> Rebuilt:
        """Fold into a new file, from the archive where there is one; what is damaged there is made anew."""
        data = self.data if self.archiving.kept and not from_log else None
        rebuilt = await rebuild_in_own_process(
            self.access, path, to, progress, parked, master=self.master, data=data, recall_days=recall_days
        )
        await self.archiving.leave_out(rebuilt.archive.get("damaged", ()))
        return rebuilt

    async def serve(self, fresh: Instance) -> None:
        """Replace the live view with a fresh one, permanently."""
        assert fresh.path is not None  # it was opened from a file
        point_to(fresh.path)
        await self.files.swap(self.view, fresh)

    async def decided(self, release: int | None = None) -> Parked:
        """The parked events, without the one at `release`."""
        await self.parked.refresh()
        return {at: decision for at, decision in self.parked.parked.items() if at != release}

    async def replay(self, to: int | datetime | None, into: Path, progress: Progress) -> JsonObject:
        """Fold up to a position or moment into a new file, with the detail of every recall."""
        position = await position_at(self.ledger, to) if isinstance(to, datetime) else to
        parked = await self.decided()
        with in_place(into) as draft:  # an interrupted replay leaves no file
            rebuilt = await self._in_own_process(draft, position, progress, parked)
        result = {
            "into": str(into),
            "position": rebuilt.position,
            "refused": rebuilt.refused,
            "seconds": round(rebuilt.seconds, 3),
            "rate": round(rebuilt.rate, 1),
            "rebuilt": {"digest": rebuilt.digest, "views": rebuilt.views},
            "archive": rebuilt.archive,
        }
        return {**await self.integrity.certified("replay", result), "digest": rebuilt.digest}

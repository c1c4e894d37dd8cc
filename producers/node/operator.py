"""Operator of a node: its status, and jobs beside the live view: rebuild, verify, replay, snapshot, backup, audit."""

from __future__ import annotations

import asyncio
import contextlib
import platform
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from kledger.contract.errors import LedgerError, ServiceFailed, UnknownReference
from kledger.contract.words import JobKind
from ledger.backup.process import back_up_in_own_process
from ledger.broker.access import BrokerAccess
from ledger.broker.subprocess_job import Progress
from ledger.event import JsonObject
from ledger.runtime.whole_file import check_directory_place, check_place, in_place
from ledger.store.jetstream import JetStreamLedger, StreamStatus
from ledger.store.parked import NONE_PARKED, Parked, ParkedEvents
from producers.access.book import NO_TOKENS, TokenBook
from producers.node.comparison import compared_with
from producers.node.integrity import Integrity
from producers.node.jobs import Work, run_job
from producers.node.paths import outside
from producers.node.readiness import LONGEST_LAG_SECONDS, Readiness, lag
from producers.operations.ports import Health, Job
from projections.analysts.admission import Places
from projections.analysts.memory_watch import analyst_limits
from projections.analysts.snapshot import copy_frozen
from projections.analysts.sql import answer_to
from projections.engine.parking import attention
from projections.engine.view import Instance, View
from projections.live.catch_up import catch_up
from projections.live.files import discard, live_file, next_file, point_to
from projections.live.projector import Projector
from projections.live.rebuild import Rebuilt, position_at, rebuild_in_own_process
from projections.live.view_file import LiveFiles
from projections.vectors.feed import VectorFeed
from projections.vectors.renewal import mended
from projections.vectors.soundness import sound, vector_reasons
from projections.views.lineage.ask import refused_count

_KEPT_JOBS, _SIGNED_WITHIN_SECONDS = 100, 10.0
YOUR_TOKEN = "YOUR-TOKEN"


class Forgetting(Protocol):
    """What the operator needs of the eraser; implemented by producers.node.eraser.Eraser."""

    trouble: str | None

    async def forget(self, subject: str, by: str, progress: Progress) -> JsonObject: ...

    async def stable_comparison(self, compare: Callable[[], Awaitable[JsonObject]]) -> JsonObject: ...

    async def keep_keys(self, backup: Path) -> int: ...


@dataclass(slots=True)
class Operator:
    """Operator interface of a running node; implements producers.operations.ports.NodeAdmin."""

    access: BrokerAccess
    ledger: JetStreamLedger
    view: View
    projector: Projector
    feed: VectorFeed
    files: LiveFiles
    data: Path
    started: float
    integrity: Integrity
    jobs: dict[str, Job]
    tasks: set[asyncio.Task[None]]
    tokens: TokenBook = NO_TOKENS
    readiness: Readiness = field(default_factory=Readiness)
    parked: ParkedEvents | None = None
    beside: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Held by a job that builds a file beside the live one: two would use the same name, and both would swap."""
    master: bytes = field(default=b"", repr=False)
    """The master key of the vault, for rebuilds; empty on a node without one."""
    eraser: Forgetting | None = None
    places: Places = field(default_factory=Places)

    async def status(self) -> JsonObject:
        """Stream head, each view's position and lag, refused events, versions, and health with its reasons."""
        reasons, head, stored_ns, stream = [], self.view.position, 0, StreamStatus()
        try:
            stream = await self.ledger.status()
            head, stored_ns = stream.head.position, stream.head.stored_ns
        except LedgerError as error:
            reasons.append(error.message)
        if why := self.ledger.hindered():
            reasons.append(why)
        views = [
            lag("duckdb", self.view.position, self.view.instance.stored_us, head, stored_ns),
            lag("vectors", self.feed.applied, self.view.instance.stored_us, head, stored_ns),
        ]
        for name, trouble in (("duckdb", self.projector.trouble), ("vectors", self.feed.trouble)):
            if trouble is not None:
                reasons.append(f"the view {name} stands still: {trouble.message}")
        reasons += vector_reasons(self.feed)
        reasons += self.integrity.reasons()
        if self.eraser is not None and self.eraser.trouble is not None:
            reasons.append(f"a person is to be forgotten, which is not done and is tried again: {self.eraser.trouble}")
        reasons += [
            f"the view {view['name']} is {view['lag_events']} events and {view['lag_seconds']} s behind"
            for view in views
            if min(view["lag_seconds"], time.monotonic() - self.started) > LONGEST_LAG_SECONDS
        ]
        warnings: list[str] = []
        if self.parked is not None:
            try:
                parking_reasons, warnings = await attention(self.ledger, self.view, self.parked)
                reasons += parking_reasons
            except LedgerError as error:
                reasons += [error.message] if error.message not in reasons else []
        return {
            "healthy": not reasons,
            "reasons": reasons,
            "warnings": warnings,
            "stream": {
                "head": head,
                "time": datetime.fromtimestamp(stored_ns / 1e9, UTC).isoformat() if stored_ns else None,
                "messages": stream.messages,
                "bytes": stream.bytes,
                "url": self.access.url,
            },
            "views": views,
            "embeddings": asdict(self.feed.backlog.state) if self.feed.settings.embedding else None,
            "chain": self.integrity.status(),
            "refused": await self.view.ask(refused_count),
            "versions": {
                "product": version("knowledge-ledger"),
                "python": platform.python_version(),
                "duckdb": version("duckdb"),
                "nats": stream.server,
                "qdrant_edge": version("qdrant-edge-py"),
            },
            "uptime_seconds": round(time.monotonic() - self.started, 3),
            "quack": {"port": self.files.address.port} if self.files.address else None,
        }

    async def health(self) -> Health:
        """Whether the node is healthy and ready, with the reasons where it is not."""
        return self.readiness.of(await self.status(), () if self.feed.comes else ("vectors",))

    async def start_rebuild(self) -> Job:
        """Fold the whole log beside the live view, compare, and serve the new file."""
        return self.start("rebuild", self.rebuild)

    async def start_verify(self) -> Job:
        """Fold from zero into a file of its own, and compare it with the live view."""
        return self.start("verify", self._verify)

    async def start_replay(self, to: int | datetime | None, into: str) -> Job:
        """Fold up to a position or moment into a new file. Raises InvalidPayload where the file cannot be made."""
        file = outside(self.data, into)
        check_place(file)
        return self.start("replay", partial(self._replay, to, file))

    async def start_snapshot(self) -> Job:
        """Publish a frozen copy of the live view."""
        return self.start("snapshot", self._snapshot)

    async def start_backup(self, into: str) -> Job:
        """Append new events to the backup in a directory. Raises InvalidPayload where none can be made there."""
        directory = outside(self.data, into)
        check_directory_place(directory)
        return self.start("backup", partial(self._back_up, directory))

    async def start_audit(self) -> Job:
        """Read the log from its start and compare it with the signed checkpoints."""
        return self.start("audit", self.integrity.audit)

    async def prove(self, item_id: str) -> JsonObject:
        """A proof for every event behind an item. Raises UnknownKnowledge, NotCertified, ChainContradicted."""
        return await self.integrity.prove(item_id)

    async def start_forget(self, subject: str, by: str) -> Job:
        """Forget a person. Raises ServiceFailed on a node without a vault."""
        if (eraser := self.eraser) is None:
            raise ServiceFailed("this node has no vault: nothing can be forgotten here")
        return self.start("forget", lambda progress: eraser.forget(subject, by, progress))

    async def job(self, job_id: str) -> Job:
        """The progress of a job. Raises UnknownReference."""
        try:
            return self.jobs[job_id]
        except KeyError:
            raise UnknownReference(
                f"there is no job {job_id}: jobs are known until the node stops, the last {_KEPT_JOBS} of them"
            ) from None

    async def sql(self, query: str) -> JsonObject:
        """The rows of one SELECT over the live view. Raises IllegalQuery."""
        instance = self.view.instance
        instance.enter()
        answer: JsonObject = await self.places.run(
            partial(answer_to, instance.con, query), analyst_limits().seconds, instance.leave
        )
        return answer

    async def attach(self) -> JsonObject:
        """The statement that attaches the live view from any DuckDB. Raises ServiceFailed."""
        if self.files.address is None:
            raise ServiceFailed("this node does not serve Quack: start it with --quack PORT")
        # With tokens each analyst attaches with their own, which is not shown here.
        address = replace(self.files.address, token=YOUR_TOKEN) if self.tokens.required else self.files.address
        return {
            "prepare": "INSTALL httpfs; LOAD httpfs; INSTALL quack; LOAD quack;",
            "statement": address.attach_statement() + ";",
            "uri": self.files.address.uri,
            "example": "FROM kl.query($$ SELECT id, task, owner FROM knowledge ORDER BY position DESC LIMIT 10 $$);",
        }

    async def close(self) -> None:
        """Cancel running jobs."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    def start(self, kind: JobKind, work: Work) -> Job:
        """Start a job that runs beside the live view."""
        job = Job(f"{kind}-{uuid.uuid4().hex[:12]}", kind)
        for old in list(self.jobs)[: max(0, len(self.jobs) - _KEPT_JOBS + 1)]:
            if self.jobs[old].state != "running":
                del self.jobs[old]
        self.jobs[job.id] = job
        task = asyncio.create_task(run_job(job, work), name=job.id)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return job

    async def rebuild(self, progress: Progress, *, release: int | None = None) -> JsonObject:
        """Fold the whole log and swap; the parked event at `release` is folded like any other."""
        result = await self._stable_comparison(partial(self._rebuild, progress, release))
        return await self.integrity.certified("rebuild", result)

    async def _stable_comparison(self, compare: Callable[[], Awaitable[JsonObject]]) -> JsonObject:
        return await compare() if self.eraser is None else await self.eraser.stable_comparison(compare)

    async def _rebuild(self, progress: Progress, release: int | None) -> JsonObject:
        async with self.beside, self._vectors_beside() as vectors:
            async with self.fresh_view(progress, await self.decided(release)) as (fresh, rebuilt):
                comparison = await compared_with(self.view.instance, fresh, rebuilt)
                async with self.feed.turn:  # the vectors restart after the view has its file, not before
                    if not comparison["equal"]:  # the vectors were built from a view that differs from the log
                        self.feed.will_begin_anew()
                    if self.parked is not None and release is not None and release in self.parked.parked:
                        await self.parked.decide(release, "released")
                    await self.serve(fresh)
                if not comparison["equal"]:
                    await self.feed.begin_anew()
            swapped = live_file(self.data / "views") == fresh.path
            if comparison["equal"]:
                comparison["vectors"] = await mended(self.feed, self.view, self.data / "vectors", await vectors)
        return {**comparison, "swapped": swapped}

    async def _verify(self, progress: Progress) -> JsonObject:
        return await self._stable_comparison(partial(self._verify_once, progress))

    async def _verify_once(self, progress: Progress) -> JsonObject:
        async with self.beside, self._vectors_beside() as vectors:
            async with self.fresh_view(progress, await self.decided()) as (fresh, rebuilt):
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
    async def fresh_view(self, progress: Progress, parked: Parked) -> AsyncIterator[tuple[Instance, Rebuilt]]:
        """A view folded from zero into its own file, at the position of the live view, which is paused meanwhile.

        The file is removed unless the body serves it. The caller holds `beside`.
        """
        path = next_file(self.data / "views")
        rebuilt = await rebuild_in_own_process(self.access, path, None, progress, parked, master=self.master)
        fresh = self.files.open(path)
        try:
            async with self.projector.paused():
                if self.view.position < rebuilt.position:
                    await catch_up(self.ledger, self.view, rebuilt.position, parked=await self.decided())
                await catch_up(self.ledger, View(fresh), self.view.position, parked=parked)
                yield fresh, rebuilt
        finally:
            if self.view.instance is not fresh:
                fresh.close()
                discard(path)

    async def serve(self, fresh: Instance) -> None:
        """Replace the live view with a fresh one, permanently."""
        assert fresh.path is not None  # it was opened from a file
        point_to(fresh.path)
        await self.files.swap(self.view, fresh)

    async def decided(self, release: int | None = None) -> Parked:
        """The parked events, without the one at `release`."""
        if self.parked is None:
            return NONE_PARKED
        await self.parked.refresh()
        return {at: decision for at, decision in self.parked.parked.items() if at != release}

    async def _replay(self, to: int | datetime | None, into: Path, progress: Progress) -> JsonObject:
        position = await position_at(self.ledger, to) if isinstance(to, datetime) else to
        parked = await self.decided()
        with in_place(into) as draft:  # an interrupted replay leaves no file
            rebuilt = await rebuild_in_own_process(self.access, draft, position, progress, parked, master=self.master)
        result = {
            "into": str(into),
            "position": rebuilt.position,
            "refused": rebuilt.refused,
            "seconds": round(rebuilt.seconds, 3),
            "rate": round(rebuilt.rate, 1),
            "rebuilt": {"digest": rebuilt.digest, "views": rebuilt.views},
        }
        return {**await self.integrity.certified("replay", result), "digest": rebuilt.digest}

    async def _back_up(self, into: Path, progress: Progress) -> JsonObject:
        with contextlib.suppress(LedgerError):  # a backup without a signature is better than none; the status says why
            await self.integrity.notary.certify((await self.ledger.head()).position, timeout=_SIGNED_WITHIN_SECONDS)
        result = asdict(await back_up_in_own_process(self.access, into, self.data, progress))
        return result | {"keys": await self.eraser.keep_keys(into) if self.eraser else 0}

    async def _snapshot(self, progress: Progress) -> JsonObject:
        async with self.projector.paused():
            position = self.view.position
            file = await asyncio.to_thread(copy_frozen, self.view.instance, self.data / "snapshots")
        progress(position, position, 0.0)
        return {"file": str(file), "position": position, "bytes": file.stat().st_size}

"""Operator of a node: its status, its jobs, SQL over the live view, and proofs."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from kledger.contract.errors import LedgerError, ServiceFailed
from ledger.backup.process import back_up_in_own_process
from ledger.broker.subprocess_job import Progress
from ledger.event import JsonObject
from ledger.runtime.whole_file import check_directory_place, check_place
from producers.access.book import TokenBook
from producers.node.eraser import Eraser
from producers.node.jobs import Jobs
from producers.node.paths import outside
from producers.node.rebuilds import Rebuilds
from producers.node.status import NodeStatus
from producers.operations.ports import Health, Job
from projections.analysts.admission import Places
from projections.analysts.memory_watch import analyst_limits
from projections.analysts.snapshot import copy_frozen
from projections.analysts.sql import answer_to

_SIGNED_WITHIN_SECONDS = 10.0
YOUR_TOKEN = "YOUR-TOKEN"


@dataclass(frozen=True, slots=True)
class Operator:
    """Operator interface of a running node; implements producers.operations.ports.NodeAdmin."""

    rebuilds: Rebuilds
    eraser: Eraser
    node: NodeStatus
    tokens: TokenBook
    jobs: Jobs = field(default_factory=Jobs)
    places: Places = field(default_factory=Places)

    async def status(self) -> JsonObject:
        """See NodeStatus.now."""
        return await self.node.now()

    async def health(self) -> Health:
        """See NodeStatus.health."""
        return await self.node.health()

    async def start_rebuild(self) -> Job:
        """Fold the whole log beside the live view, compare, and serve the new file."""
        return self.jobs.start("rebuild", self.rebuilds.rebuild)

    async def start_verify(self) -> Job:
        """Fold from zero into a file of its own, and compare it with the live view."""
        return self.jobs.start("verify", self.rebuilds.verify)

    async def start_replay(self, to: int | datetime | None, into: str) -> Job:
        """Fold up to a position or moment into a new file. Raises InvalidPayload where the file cannot be made."""
        file = outside(self.rebuilds.data, into)
        check_place(file)
        return self.jobs.start("replay", partial(self.rebuilds.replay, to, file))

    async def start_snapshot(self) -> Job:
        """Publish a frozen copy of the live view."""
        return self.jobs.start("snapshot", self._snapshot)

    async def start_backup(self, into: str) -> Job:
        """Append new events to the backup in a directory. Raises InvalidPayload where none can be made there."""
        directory = outside(self.rebuilds.data, into)
        check_directory_place(directory)
        return self.jobs.start("backup", partial(self._back_up, directory))

    async def start_audit(self) -> Job:
        """Read the log from its start and compare it with the signed checkpoints."""
        return self.jobs.start("audit", self.rebuilds.integrity.audit)

    async def prove(self, item_id: str) -> JsonObject:
        """A proof for every event behind an item. Raises UnknownKnowledge, NotCertified, ChainContradicted."""
        return await self.rebuilds.integrity.prove(item_id)

    async def start_forget(self, subject: str, by: str) -> Job:
        """Forget a person."""
        return self.jobs.start("forget", partial(self.eraser.forget, subject, by))

    async def job(self, job_id: str) -> Job:
        """The progress of a job. Raises UnknownReference."""
        return self.jobs.get(job_id)

    async def sql(self, query: str) -> JsonObject:
        """The rows of one SELECT over the live view. Raises IllegalQuery."""
        instance = self.rebuilds.view.instance
        instance.enter()
        answer: JsonObject = await self.places.run(
            partial(answer_to, instance.con, query), analyst_limits().seconds, instance.leave
        )
        return answer

    async def attach(self) -> JsonObject:
        """The statement that attaches the live view from any DuckDB. Raises ServiceFailed."""
        served = self.rebuilds.files.address
        if served is None:
            raise ServiceFailed("this node does not serve Quack: start it with --quack PORT")
        # With tokens each analyst attaches with their own, which is not shown here.
        address = replace(served, token=YOUR_TOKEN) if self.tokens.required else served
        return {
            "prepare": "INSTALL httpfs; LOAD httpfs; INSTALL quack; LOAD quack;",
            "statement": address.attach_statement() + ";",
            "uri": served.uri,
            "example": "FROM kl.query($$ SELECT id, task, owner FROM knowledge ORDER BY position DESC LIMIT 10 $$);",
        }

    async def _back_up(self, into: Path, progress: Progress) -> JsonObject:
        of = self.rebuilds
        with contextlib.suppress(LedgerError):  # a backup without a signature is better than none; the status says why
            await of.integrity.notary.certify((await of.ledger.head()).position, timeout=_SIGNED_WITHIN_SECONDS)
        result = asdict(await back_up_in_own_process(of.access, into, of.data, progress))
        return result | await self.eraser.keep_private(into)

    async def _snapshot(self, progress: Progress) -> JsonObject:
        of = self.rebuilds
        async with of.projector.paused():
            position = of.view.position
            file = await asyncio.to_thread(copy_frozen, of.view.instance, of.data / "snapshots")
        progress(position, position, 0.0)
        return {"file": str(file), "position": position, "bytes": file.stat().st_size}

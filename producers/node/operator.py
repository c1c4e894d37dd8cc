"""Operator of a node: its status, its jobs, SQL over the live view, and proofs."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import partial

from kledger.contract.errors import (
    BackupDamaged,
    BackupMismatch,
    LedgerError,
    LogGap,
    ServiceFailed,
    VaultDamaged,
)
from kledger.contract.words import StartableJob
from ledger.backup.address import StoreAddress, is_in_store
from ledger.event import JsonObject
from ledger.integrity.found import found_in_backup, lost_by_vault, missing_from_log
from ledger.progress import Progress
from ledger.runtime.whole_file import check_directory_place, check_for_duckdb, check_place
from producers.access.book import TokenBook
from producers.node.eraser import Eraser
from producers.node.jobs import Jobs, Work
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
        return await self.node.now()

    async def health(self) -> Health:
        return await self.node.health()

    async def start(
        self,
        kind: StartableJob,
        *,
        to: int | datetime | None = None,
        into: str = "",
        subject: str = "",
        by: str = "",
        from_log: bool = False,
        columns: bool | None = None,
    ) -> Job:
        work: Work
        match kind:
            case "replay":
                check_place(file := outside(self.rebuilds.data, into))
                check_for_duckdb(file)
                work = partial(self.rebuilds.replay, to, file)
            case "backup":
                work = partial(self._back_up, self._backup_place(into), columns)
            case "forget":
                work = partial(self.eraser.forget, subject, by)
            case "snapshot":
                work = self._snapshot
            case "audit":
                work = self.rebuilds.integrity.audit
            case "verify":
                work = partial(self.rebuilds.verify, from_log=from_log)
            case "rebuild":
                work = self.rebuilds.rebuild
        return self.jobs.start(kind, partial(self._noting, kind, work))

    async def prove(self, item_id: str) -> JsonObject:
        """A proof for every event behind an item. Raises UnknownKnowledge, NotCertified, ChainContradicted."""
        return await self.rebuilds.integrity.prove(item_id)

    async def job(self, job_id: str) -> Job:
        """The progress of a job. Raises UnknownReference."""
        return self.jobs.get(job_id)

    async def all_jobs(self) -> list[Job]:
        """The jobs since the node started, newest first."""
        return self.jobs.newest_first()

    async def certificates(self, most: int) -> JsonObject:
        """The last signed checkpoints and certificates that the node keeps, newest first."""
        return await asyncio.to_thread(self.rebuilds.integrity.kept, most)

    async def sql(self, query: str) -> JsonObject:
        """The rows of one SELECT over the live view. Raises IllegalQuery, and ServiceFailed where it is damaged."""
        instance = self.rebuilds.view.instance
        instance.enter()
        try:
            answer: JsonObject = await self.places.run(
                partial(answer_to, instance.con, query), analyst_limits().seconds, instance.leave
            )
        except Exception as error:
            instance.refuse_damaged(error)
            raise
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

    def _backup_place(self, into: str) -> str:
        """Where a backup is to go. Raises InvalidPayload."""
        if is_in_store(into):
            return str(StoreAddress.parse(into))
        check_directory_place(directory := outside(self.rebuilds.data, into))
        return str(directory)

    async def _noting(self, kind: StartableJob, work: Work, progress: Progress) -> JsonObject:
        """Do the work of a job. What ends it because it is not intact stays in the health of the node."""
        try:
            return await work(progress)
        except BackupDamaged as error:
            problems = error.details.get("problems")
            told = list(map(str, problems)) if isinstance(problems, list) else ["its manifest cannot be read"]
            self.rebuilds.integrity.note("backup", found_in_backup(kind, told))
            raise
        except VaultDamaged as error:
            if "keys" in error.details:
                self.rebuilds.integrity.note("keys", lost_by_vault(kind, error.details["keys"]))
            raise
        except (LogGap, BackupMismatch) as error:
            with contextlib.suppress(LedgerError):  # the broker may be gone by now
                await self._note_gap(kind, error)
            raise

    async def _note_gap(self, kind: StartableJob, gap: LedgerError) -> None:
        integrity, first, last = self.rebuilds.integrity, gap.details.get("first"), gap.details.get("last")
        if isinstance(first, int) and first <= (await integrity.ledger.head()).position:
            integrity.note("log", missing_from_log(kind, first, last))

    async def _back_up(self, into: str, columns: bool | None, progress: Progress) -> JsonObject:
        from ledger.backup.process import back_up_in_own_process

        of = self.rebuilds
        with contextlib.suppress(LedgerError):  # a backup without a signature is better than none; the status says why
            await of.integrity.notary.certify((await of.ledger.head()).position, timeout=_SIGNED_WITHIN_SECONDS)
        result = asdict(await back_up_in_own_process(of.access, into, of.data, progress, columns))
        result |= await self.eraser.keep_private(into)
        of.integrity.note("backup", None)
        of.integrity.note("keys", None)
        return result

    async def _snapshot(self, progress: Progress) -> JsonObject:
        of = self.rebuilds
        async with of.projector.paused():
            position = of.view.position
            file = await asyncio.to_thread(copy_frozen, of.view.instance, of.data / "snapshots")
        progress(position, position, 0.0)
        return {"file": str(file), "position": position, "bytes": file.stat().st_size}

"""Jobs of a node: started, looked up, cancelled; progress and outcome stand in the job and in the operator's log.

The log has the kind of the job and how it ended; the subject of a forgetting, or a requested file, is only in the
answer.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import structlog

from kledger.contract.errors import LedgerError, NodeUnreachable, ServiceFailed, UnknownReference
from kledger.contract.words import JobKind
from ledger.event import JsonObject
from ledger.progress import Progress
from ledger.runtime.no_room import disk_failed
from producers.operations.ports import Job

log = structlog.get_logger(__name__)

Work = Callable[[Progress], Awaitable[JsonObject]]
_LOGGED = ("position", "events", "equal", "swapped", "bytes", "segments")
"""Fields of a result that are logged, where it has them."""
_KEPT_JOBS = 100


@dataclass(frozen=True, slots=True)
class Jobs:
    """The jobs of a node until it stops, the last 100 of them."""

    by_id: dict[str, Job] = field(default_factory=dict)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    def start(self, kind: JobKind, work: Work) -> Job:
        """Start a job that runs beside the live view."""
        job = Job(f"{kind}-{uuid.uuid4().hex[:12]}", kind)
        for old in list(self.by_id)[: max(0, len(self.by_id) - _KEPT_JOBS + 1)]:
            if self.by_id[old].state != "running":
                del self.by_id[old]
        self.by_id[job.id] = job
        task = asyncio.create_task(run_job(job, work), name=job.id)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return job

    def get(self, job_id: str) -> Job:
        """The progress of a job. Raises UnknownReference."""
        try:
            return self.by_id[job_id]
        except KeyError:
            raise UnknownReference(
                f"there is no job {job_id}: jobs are known until the node stops, the last {_KEPT_JOBS} of them"
            ) from None

    def newest_first(self) -> list[Job]:
        """All of them."""
        return list(reversed(self.by_id.values()))

    async def close(self) -> None:
        """Cancel running jobs."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


async def run_job(job: Job, work: Work) -> None:
    """Do the work, and record its progress and outcome in the job."""

    def progress(done: int, total: int, rate: float) -> None:
        job.done, job.total, job.rate = done, total, round(rate, 1)

    began = time.monotonic()
    log.info(f"{job.kind} began", job=job.id)
    try:
        job.result = await work(progress)
        job.state = "done"
        _log_end(job, began, "done", **{name: job.result[name] for name in _LOGGED if name in job.result})
    except LedgerError as error:
        job.error = {"code": error.code, "message": error.message, "details": error.details}
        job.state = "failed"
        about = {} if job.kind == "forget" else {"error": error.message}  # the message names the person
        _log_end(job, began, "failed", code=error.code, **about)
    except asyncio.CancelledError:
        message = f"the node stopped before its {job.kind} was done: order it again once a node runs"
        job.error = {"code": NodeUnreachable.code, "message": message, "details": {}}
        job.state = "failed"
        _log_end(job, began, "stopped", why="the node stops")  # as it was told to: nothing failed
        raise
    except Exception as error:
        full = disk_failed(error)
        message = f"{job.kind} failed: {error if full is None else full.message}"
        if full is None:
            log.exception(f"{job.kind} failed", job=job.id)
        else:  # no fault of the program, in which nobody looks for a place
            _log_end(job, began, "failed", code=full.code, error=full.message)
        job.error = {"code": ServiceFailed.code, "message": message, "details": {}}
        job.state = "failed"


def _log_end(job: Job, began: float, how: str, **about: Any) -> None:
    line = log.info if how in ("done", "stopped") else log.error
    line(f"{job.kind} {how}", job=job.id, seconds=round(time.monotonic() - began, 3), **about)

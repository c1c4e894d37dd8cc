"""Requests of the operator: status, health, SQL, proofs, jobs such as rebuild, and events that do not count."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kledger.client.faces import Endpoint
from kledger.client.knowledge import Moment, moment
from kledger.client.refusals import error_of
from kledger.client.wire import Wire, segment
from kledger.contract.words import StartableJob

if TYPE_CHECKING:
    from kledger.answers.admin import (
        Attach,
        Certificates,
        Health,
        Job,
        Jobs,
        NodeStatus,
        ParkingDecision,
        Proof,
        RefusedEvents,
        Relations,
        Table,
    )
    from kledger.answers.models import ModelsOfNode

ADMIN = "/api/admin"
SOONEST_LOOK = 0.05  # seconds between two looks at what goes on; it grows to LATEST_LOOK
LATEST_LOOK = 0.5


async def status(wire: Wire) -> NodeStatus:
    """Stream head, position and lag of each view, refused events, versions, and `healthy` with reasons."""
    return await wire.look(f"{ADMIN}/status")


async def health(wire: Wire) -> Health:
    """The node's own verdict; one that is not healthy (status 503) is an answer, not an error."""
    return await wire.look("/health", also=503)


async def sql(wire: Wire, query: str) -> Table:
    """One read-only query on the live view. IllegalQuery when it is not one SELECT, or takes too long."""
    return await wire.read(f"{ADMIN}/sql", method="POST", body={"query": query})


async def models(wire: Wire) -> ModelsOfNode:
    """Which model is set for which work, and what works without it; none is called."""
    return await wire.look(f"{ADMIN}/models")


async def try_models(wire: Wire) -> ModelsOfNode:
    """Which model is set for which work, after one call of each, with its time or error; calls may be billed."""
    return await wire.order(f"{ADMIN}/models/try", {})


async def attach(wire: Wire) -> Attach:
    """How any DuckDB attaches to the live view."""
    return await wire.look(f"{ADMIN}/attach")


async def start_job(
    wire: Wire,
    kind: StartableJob,
    *,
    to: Moment | None = None,
    into: str | Path | None = None,
    subject: str | None = None,
    from_log: bool = False,
    columns: bool | None = None,
) -> Job:
    """Start a job and return it at once.

    `to` and `into` (an absolute file of the node) belong to replay, `into` (an absolute directory, or
    `s3://BUCKET/PREFIX`) and `columns` (keep the archive's decoded columns as well; None: as before) to backup,
    `subject` (`user:ID`) to forget, `from_log` (read nothing of the archive) to verify.
    """
    body: dict[str, Any] = {}
    if kind == "replay":
        body = {"to": moment(to), "into": None if into is None else str(into)}
    elif kind == "backup":
        body = {"into": None if into is None else str(into)}
        if columns is not None:
            body["columns"] = columns
    elif kind == "forget":
        body = {"subject": subject}
    elif kind == "verify" and from_log:
        body = {"from_log": True}
    return await wire.order(f"{ADMIN}/{kind}", body)


async def prove(wire: Wire, id: str) -> Proof:
    """A proof for every event behind an item. UnknownKnowledge, NotCertified, ChainContradicted."""
    return await wire.read(f"{ADMIN}/prove", method="POST", body={"id": id})


async def job(wire: Wire, id: str) -> Job:
    """How far a job is."""
    return await wire.look(f"{ADMIN}/jobs/{segment(id)}")


async def jobs(wire: Wire) -> Jobs:
    """The jobs of the node since its start, newest first."""
    return await wire.look(f"{ADMIN}/jobs")


async def certificates(wire: Wire) -> Certificates:
    """The last signed checkpoints and certificates of rebuilds that the node keeps, newest first."""
    return await wire.look(f"{ADMIN}/certificates")


async def columns(wire: Wire) -> Relations:
    """What a statement of SQL can name: the documented tables and views with their columns."""
    return await wire.look(f"{ADMIN}/columns")


def pauses() -> Iterator[float]:
    """Seconds to wait between looks at what goes on, without end: what takes long is looked at less and less often."""
    pause = SOONEST_LOOK
    while True:
        yield pause
        pause = min(pause * 1.5, LATEST_LOOK)


async def wait_job(
    wire: Wire, id: str, on_progress: Callable[[Job], None] | None = None, *, timeout: float | None = None
) -> Job:
    """Look at a job until it is done, and return it with its `result`.

    `on_progress` is called after every look. Raises the error that the job failed with, TimeoutError when it is not
    done at a look `timeout` seconds later; the job itself goes on then.
    """
    until = None if timeout is None else time.monotonic() + timeout
    for pause in pauses():
        seen = await job(wire, id)
        if on_progress is not None:
            on_progress(seen)
        if seen["state"] == "failed":
            raise error_of(seen["error"] or {"message": f"the {seen['kind']} job {id} failed"})
        if seen["state"] == "done":
            return seen
        left = pause if until is None else until - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"the {seen['kind']} job {id} is not done after {timeout:g} s")
        await wire.connection.carrier.pause(min(pause, left))
    raise AssertionError("the pauses do not end")


async def refused(wire: Wire, *, after: int = 0, limit: int = 100, code: str | None = None) -> RefusedEvents:
    """`refused`: the events after a position that do not count, each with its reason; parked ones with a `state`."""
    query = {"after": after, "limit": limit, "code": code}
    return await wire.read(f"{ADMIN}/refused", query)


async def retry_parked(wire: Wire, position: int) -> Job:
    """Start a job that folds a parked event after all, and return it at once. UnknownReference when none is parked."""
    return await wire.order(f"{ADMIN}/refused/{position}/retry", {})


async def dismiss_parked(wire: Wire, position: int) -> ParkingDecision:
    """Let a parked event rest. UnknownReference when none is parked there, IllegalState when it rests already."""
    return await wire.order(f"{ADMIN}/refused/{position}/dismiss", {})


class AdminEndpoints:
    """What the operator asks of the node."""

    status = Endpoint(status)
    health = Endpoint(health)
    sql = Endpoint(sql)
    models = Endpoint(models)
    try_models = Endpoint(try_models)
    attach = Endpoint(attach)
    start_job = Endpoint(start_job)
    prove = Endpoint(prove)
    job = Endpoint(job)
    jobs = Endpoint(jobs)
    certificates = Endpoint(certificates)
    columns = Endpoint(columns)
    wait_job = Endpoint(wait_job)


class RefusedEndpoints:
    """What the operator asks about events that do not count."""

    refused = Endpoint(refused)
    retry_parked = Endpoint(retry_parked)
    dismiss_parked = Endpoint(dismiss_parked)

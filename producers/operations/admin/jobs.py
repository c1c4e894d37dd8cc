"""Operator interface of a node: status, jobs beside the live view, SQL, and how to attach.

A caller that names an identity is not the operator. The node itself does the work (NodeAdmin).
"""

from __future__ import annotations

from datetime import datetime
from pathlib import PurePath

from kledger.contract.errors import InvalidPayload, NotOwner
from kledger.contract.scopes import Caller
from kledger.contract.words import StartableJob
from ledger.backup.address import is_in_store
from ledger.event import JsonObject
from ledger.privacy.personal import NOBODY, require_person
from producers.operations.desk import ANY, Desk, Freshness, reach_recalls, require_come
from producers.operations.ports import Job
from projections.analysts.columns import documented

MOST_CERTIFICATES = 20
"""Checkpoints and certificates in one answer, of each."""


def require_operator(caller: Caller) -> None:
    """Raise NotOwner when the caller names an identity."""
    if not caller.is_operator:
        raise NotOwner(
            f"this is the node operator's and you are {', '.join(caller.entities())}: ask without an identity"
        )


async def status(desk: Desk, caller: Caller) -> JsonObject:
    """The status of the node. Raises NotOwner."""
    require_operator(caller)
    await reach_recalls(desk, ANY)  # what was answered counts, and recalls that wait are no lag
    node_status = await desk.admin.status()
    return node_status if desk.sizes is None else {**node_status, "bytes": await desk.sizes.now()}


async def start(
    desk: Desk,
    caller: Caller,
    kind: StartableJob,
    *,
    to: int | datetime | None = None,
    into: str = "",
    subject: str = "",
    from_log: bool = False,
    columns: bool | None = None,
) -> Job:
    """Start a job; `job` reports its progress. Raises NotOwner, InvalidPayload, BrokerUnavailable."""
    require_operator(caller)
    if kind == "forget":
        require_person(subject)
    if kind == "replay" or (kind == "backup" and not is_in_store(into)):
        _require_absolute(into)
    if to is not None:
        await require_come(desk, to, "to")
    return await desk.admin.start(
        kind, to=to, into=into, subject=subject, by=NOBODY, from_log=from_log, columns=columns
    )


def _require_absolute(into: str) -> None:
    if not PurePath(into).is_absolute() or "\0" in into:
        raise InvalidPayload(
            f"into {into!r} is not an absolute path of the node's machine: write the whole path",
            errors=[{"field": "into", "reason": "is not an absolute path"}],
        )


async def prove(desk: Desk, caller: Caller, item_id: str, freshness: Freshness) -> JsonObject:
    """A proof for every event behind an item.

    Raises NotOwner, UnknownKnowledge, NotCertified, ChainContradicted, ViewBehind.
    """
    require_operator(caller)
    await freshness.reach(desk.view)
    return await desk.admin.prove(item_id)


async def job(desk: Desk, caller: Caller, job_id: str) -> Job:
    """The progress of a job. Raises NotOwner, UnknownReference."""
    require_operator(caller)
    return await desk.admin.job(job_id)


async def jobs(desk: Desk, caller: Caller) -> JsonObject:
    """The jobs of this node since its start, newest first. Raises NotOwner."""
    require_operator(caller)
    return {"jobs": await desk.admin.all_jobs()}


async def certificates(desk: Desk, caller: Caller) -> JsonObject:
    """The last signed checkpoints and certificates that the node keeps, newest first. Raises NotOwner."""
    require_operator(caller)
    return await desk.admin.certificates(MOST_CERTIFICATES)


async def columns(desk: Desk, caller: Caller) -> JsonObject:
    """What a statement of SQL can name: the documented relations with their columns. Raises NotOwner."""
    require_operator(caller)
    return {"relations": await desk.view.ask(documented)}


async def sql(desk: Desk, caller: Caller, query: str, freshness: Freshness) -> JsonObject:
    """The rows of one SELECT over the live view. Raises NotOwner, IllegalQuery, ViewBehind."""
    require_operator(caller)
    await reach_recalls(desk, freshness)
    position = desk.view.position
    return {"position": position, **await desk.admin.sql(query)}


async def attach(desk: Desk, caller: Caller) -> JsonObject:
    """How to attach the live view from any DuckDB. Raises NotOwner."""
    require_operator(caller)
    return await desk.admin.attach()

"""Processes: the state of what models were asked to do, as their owners see it, and the wait for the outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Protocol

from kledger.contract.errors import UnknownProcess, ViewBehind
from kledger.contract.scopes import Caller
from ledger.event import JsonObject, Lineage
from producers.operations.desk import ANY, Desk, Freshness, folded, reach, reach_head
from producers.operations.outcomes import part_of_list
from projections.views.processes import ask
from projections.views.processes.ask import Page, Process

PATIENCE = 25.0
"""Default number of seconds that an answer waits for a model: less than the timeout of clients."""
MAX_PATIENCE = 300.0

IsSettled = Callable[[Process], Awaitable[bool]]


class Kind(Protocol):
    """One kind of process: its module."""

    KIND: str

    def shown(self, process: Process, /) -> JsonObject:
        """A process of this kind as JSON for every interface."""


def caused(lineage: Lineage, process: Process) -> Lineage:
    """The lineage of a decision on a process: that of the caller, with the request as its cause."""
    return Lineage(
        lineage.trace_id or process.trace_id,
        lineage.message_id,
        lineage.causation_id or process.requested_event,
        process.id,
        lineage.traceparent,
    )


async def own(desk: Desk, caller: Caller, kind: str, process_id: str) -> Process:
    """A process of the caller's, as of its last event. Raises UnknownProcess, ViewBehind, BrokerUnavailable."""
    await folded(desk, kind, process_id)
    process: Process | None = await desk.view.ask(ask.process, desk.org, kind, process_id)
    if process is None or not caller.may_act_for(process.owner):
        raise UnknownProcess(
            f"there is no {kind} {process_id[:200]!r} of yours: check the id and as whom you ask", id=process_id
        )
    return process


async def own_now(desk: Desk, caller: Caller, kind: str, process_id: str) -> tuple[Process, int]:
    """A process of the caller's as of the head of the log, to be decided on, and the last position of its own events.

    The position comes first: a decision that expects it is refused where somebody decides after that. Raises as `own`.
    """
    last = await folded(desk, kind, process_id)
    await reach_head(desk)
    return await own(desk, caller, kind, process_id), last


async def get(desk: Desk, caller: Caller, of: Kind, process_id: str) -> JsonObject:
    """One process of the caller's. Raises UnknownProcess, ViewBehind, BrokerUnavailable."""
    return of.shown(await own(desk, caller, of.KIND, process_id))


async def listed(desk: Desk, caller: Caller, of: Kind, page: Page, freshness: Freshness = ANY) -> JsonObject:
    """A page (ProcessPage) of the caller's processes; for the operator, of all of them. Raises ViewBehind."""
    await reach(desk, freshness)
    position = desk.view.position
    owners = None if caller.is_operator else caller.entities()
    rows, total = await desk.view.ask(ask.processes, desk.org, of.KIND, owners, page)
    return part_of_list(list(map(of.shown, rows)), total, page.limit, page.offset, position)


async def settled(
    desk: Desk, caller: Caller, kind: str, process_id: str, is_settled: IsSettled, wait: float
) -> tuple[Process, bool]:
    """The process once `is_settled`, or as it is after `wait` seconds; the second value says which of the two.

    Raises UnknownProcess where its request was refused, BrokerUnavailable, ViewBehind.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + wait
    seen = desk.view.position  # read before each query, so that events folded meanwhile are not missed
    process = await own(desk, caller, kind, process_id)
    while not (done := await is_settled(process)) and (left := until - loop.time()) > 0:
        try:
            await desk.view.wait_for(seen + 1, left)
        except ViewBehind:
            continue
        seen = desk.view.position
        now: Process | None = await desk.view.ask(ask.process, desk.org, kind, process_id)
        process = now or process
    return process, done

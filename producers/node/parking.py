"""Parking: decisions of a node about parked events (dead letters), and a live view that agrees with them.

A retry is a rebuild: the event's position is in the middle of the log, and later events may then have other outcomes.
The rebuild is strict, so an event that still cannot be folded changes nothing. The decision is recorded before the new
file is served, so that every later rebuild agrees.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass

import structlog

from kledger.contract.errors import LedgerError, UnknownReference
from ledger.broker.access import BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.broker.subprocess_job import Progress
from ledger.event import JsonObject
from ledger.store.parked import ParkedEvents, ensure_parked_stream
from ledger.stream import Ledger
from producers.node.jobs import Jobs
from producers.node.rebuilds import Rebuilds
from producers.operations.ports import Job
from projections.engine.parking import disagreement, held_apart
from projections.engine.view import Instance
from projections.live.files import discard
from projections.live.view_file import LiveFiles

log = structlog.get_logger(__name__)


async def open_parked(access: BrokerAccess, *, replicas: int = 1) -> ParkedEvents:
    """The parking decisions, read from the log's storage. Raises BrokerUnavailable, BrokerMisconfigured."""
    await ensure_parked_stream(access, replicas=replicas)
    parked = ParkedEvents(await BrokerConnection.open(access, "node", name="kledger-parked"))
    await parked.refresh()
    return parked


async def opened_as_decided(files: LiveFiles, ledger: Ledger, parked: ParkedEvents) -> tuple[Instance, bool]:
    """The live view, and whether it is rebuilt because decisions changed since it was folded."""
    instance = await asyncio.to_thread(files.open_live)
    try:
        positions = await disagreement(ledger, *held_apart(instance.con), parked.parked)
    except LedgerError as error:  # a truncated log is reported again when it is folded
        log.warning("the view cannot be compared with what is parked", error=error.message)
        return instance, False
    if not positions:
        return instance, False
    log.error("the view is made anew: other decisions about parked events count now", positions=positions[:20])
    instance.close()
    if instance.path is not None:
        discard(instance.path)
    return await asyncio.to_thread(files.open_live), True


@dataclass(frozen=True, slots=True)
class Parking:
    """Implements producers.operations.ports.ParkingAdmin."""

    rebuilds: Rebuilds
    jobs: Jobs
    parked: ParkedEvents

    async def states(self) -> dict[int, JsonObject]:
        """The last decision about each event, by position."""
        await self.parked.refresh()
        return {
            decision.position: {"state": decision.state, "tries": decision.tries, "decided": decision.time}
            for decision in self.parked.decisions
        }

    async def dismiss(self, position: int) -> JsonObject:
        """Dismiss a parked event permanently; the views do not change. Raises UnknownReference, IllegalState."""
        return asdict(await self.parked.decide(position, "dismissed"))

    async def start_retry(self, position: int) -> Job:
        """Start a rebuild that includes this event. Raises UnknownReference when it is not parked."""
        await self.parked.refresh()
        if position not in self.parked.parked:
            raise UnknownReference(f"no event is parked at position {position}: kledger refused list shows which are")

        async def retry(progress: Progress) -> JsonObject:
            result = await self.rebuilds.rebuild(progress, release=position)
            return {**result, "retried": position}

        return self.jobs.start("retry", retry)

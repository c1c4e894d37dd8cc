"""How does a node decide about parked events, and keep its view to what was decided?

Trying an event again is a rebuild: its place is in the midst of the log, and what came after it may turn out otherwise.
The rebuild is strict, so an event that still cannot be folded changes nothing; and the decision is kept before the
new file is served, so that every later rebuild agrees.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass

import structlog

from kledger.contract.errors import LedgerError, UnknownReference
from ledger.broker.access import BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.event import JsonObject
from ledger.runtime.subprocess_job import Progress
from ledger.store.parked import ParkedEvents, ensure_parked_stream
from ledger.stream import Ledger
from producers.node.operator import Operator
from producers.operations.admin.jobs import Job
from projections.engine.parking import disagreement, held_apart
from projections.live.files import discard
from projections.live.view import Instance
from projections.live.view_file import LiveFiles

log = structlog.get_logger(__name__)


async def open_parked(access: BrokerAccess, *, replicas: int = 1) -> ParkedEvents:
    """The decisions that the log's own storage holds, read. Raises BrokerUnavailable, BrokerMisconfigured."""
    await ensure_parked_stream(access, replicas=replicas)
    parked = ParkedEvents(await BrokerConnection.open(access, "node", name="kledger-parked"))
    await parked.refresh()
    return parked


async def opened_as_decided(files: LiveFiles, ledger: Ledger, parked: ParkedEvents) -> tuple[Instance, bool]:
    """The live view, and whether it is made anew because what was decided has changed since it was folded."""
    instance = await asyncio.to_thread(files.open_live)
    try:
        apart = await disagreement(ledger, *held_apart(instance.con), parked.parked)
    except LedgerError as error:  # a log that was cut says so again when it is folded
        log.warning("the view cannot be compared with what is parked", error=error.message)
        return instance, False
    if not apart:
        return instance, False
    log.error("the view is made anew: other decisions about parked events count now", positions=apart[:20])
    instance.close()
    if instance.path is not None:
        discard(instance.path)
    return await asyncio.to_thread(files.open_live), True


@dataclass(frozen=True, slots=True)
class Parking:
    """See producers.operations.admin.refused.ParkingAdmin."""

    operator: Operator
    parked: ParkedEvents

    async def states(self) -> dict[int, JsonObject]:
        """What was decided last about each event, by position."""
        await self.parked.refresh()
        return {
            decision.position: {"state": decision.state, "tries": decision.tries, "decided": decision.time}
            for decision in self.parked.decisions
        }

    async def dismiss(self, position: int) -> JsonObject:
        """Let a parked event rest for good; the views stay as they are. Raises UnknownReference, IllegalState."""
        return asdict(await self.parked.decide(position, "dismissed"))

    async def start_retry(self, position: int) -> Job:
        """Fold everything anew with this event among the rest. Raises UnknownReference when it is not parked."""
        await self.parked.refresh()
        if position not in self.parked.parked:
            raise UnknownReference(f"no event is parked at position {position}: kledger refused list shows which are")

        async def retry(progress: Progress) -> JsonObject:
            told = await self.operator.rebuild(progress, release=position)
            return {**told, "retried": position}

        return self.operator.start("retry", retry)

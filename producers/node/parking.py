"""Parking: decisions of a node about parked events (dead letters).

A retry is a rebuild: the event's position is in the middle of the log, and later events may then have other outcomes.
The rebuild is strict, so an event that still cannot be folded changes nothing. The decision is recorded before the new
file is served, so that every later rebuild agrees.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from kledger.contract.errors import UnknownReference
from ledger.event import JsonObject
from ledger.progress import Progress
from ledger.store.parked import ParkedEvents
from producers.node.jobs import Jobs
from producers.node.rebuilds import Rebuilds
from producers.operations.ports import Job


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

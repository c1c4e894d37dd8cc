"""Requests of the operator about events that do not count."""

from __future__ import annotations

from kledger.answers.admin import Job, ParkingDecision, RefusedEvents
from kledger.client.admin import ADMIN
from kledger.client.faces import Endpoint
from kledger.client.wire import Wire


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


class RefusedEndpoints:
    """What the operator asks about events that do not count."""

    refused = Endpoint(refused)
    retry_parked = Endpoint(retry_parked)
    dismiss_parked = Endpoint(dismiss_parked)

"""Opens the live view of a node, as the decisions about parked events have it."""

from __future__ import annotations

import asyncio

import structlog

from kledger.contract.errors import LedgerError
from ledger.broker.access import BrokerAccess
from ledger.broker.connection import BrokerConnection
from ledger.store.parked import ParkedEvents, ensure_parked_stream
from ledger.stream import Ledger
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
        if not instance.position and (head := (await ledger.head()).position):
            log.info("the views are folded from the start of the log", events=head)
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
    return await asyncio.to_thread(files.open_live, expected=False), True

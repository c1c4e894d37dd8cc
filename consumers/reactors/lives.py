"""Reactor of short memories: states what was recalled often enough and what is over, as follows from the log.

It asks nobody and needs no model. What it states is checked by the gate, and two nodes that state it at once state the
same event.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import structlog

from consumers.reactors.work import NAMESPACE, Append
from kledger.contract.errors import LedgerError
from ledger.event import Fact, NewEvent, utc_now
from ledger.events.knowledge import KnowledgeExpired, KnowledgePromoted
from ledger.named_ids import named_id
from ledger.privacy.personal import NOBODY
from projections.engine.view import View
from projections.views.knowledge.lives import Due, due

log = structlog.get_logger(__name__)

TICK = 1.0
"""Seconds between two looks."""
GRACE = timedelta(seconds=2)
"""How long a memory has to be over: the broker's clock, which the gate goes by, may be behind this one."""
MOST = 1_000
"""Memories that one look states."""


class LifeKeeper:
    """States promotions by recalls and expiries of one tenant."""

    def __init__(self, org: str, view: View, append: Append) -> None:
        self._org, self._view, self._append = org, view, append
        self._looked_at = -1
        self._next: datetime | None = None
        self._stated: frozenset[str] = frozenset()  # of what is due, what the log has already and did not count

    async def run(self) -> None:
        """Look whenever the view has moved or a memory is over, until cancelled."""
        while True:
            try:
                await self.look(utc_now())
            except LedgerError as error:
                log.info("what became of short memories is stated later", code=error.code)
            await asyncio.sleep(TICK)

    async def look(self, now: datetime) -> int:
        """State what is due at a moment; returns how many memories were. Raises what appending and asking raise."""
        position, moment = self._view.position, now - GRACE
        if position == self._looked_at and (self._next is None or moment < self._next):
            return 0
        found, self._next = await self._view.ask(due, self._org, moment, MOST)
        events = {event.id: event for event in (self._event(each, now) for each in found)}
        if new := [event for own_id, event in events.items() if own_id not in self._stated]:
            await self._append(new)
        self._stated = frozenset(events)
        self._looked_at = position if len(found) < MOST else -1
        return len(found)

    def _event(self, each: Due, now: datetime) -> NewEvent:
        fact: Fact = KnowledgePromoted(cause="recalled") if each.promoted else KnowledgeExpired(after=each.lifetime)
        # How long that is ago, so that what was refused as too early is not taken for the statement that is due: each
        # time twice as long, as every refusal stays in the log, and this clock may be days ahead of the broker's.
        since = each.ends - each.lifetime if each.promoted else each.ends
        doublings = max(0, int((now.timestamp() - since) // 60)).bit_length()
        state = f"{each.version_position} {each.recalls} {since:.6f} {doublings}"
        own_id = named_id(NAMESPACE, f"{self._org}\n{each.id}\n{fact.name}\n{state}")
        return NewEvent(fact, each.id, NOBODY, self._org, id=own_id, time=now)

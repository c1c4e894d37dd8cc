"""How much waits in each tab, asked in few requests: two of the numbers are of the health of memories."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from producers.web.visit import Visit


async def waiting(visit: Visit) -> Mapping[str, int]:
    """The numbers by the name of the tab; of refused events for operators alone."""
    ledger = visit.ledger
    conflicts, evolutions, slims, held, health = await asyncio.gather(
        ledger.conflicts(limit=1),
        ledger.evolutions(status="proposed", limit=1),
        ledger.slims(status="reported", limit=1),
        ledger.held_statements(limit=1),
        ledger.memory_health(),
    )
    refused = (await ledger.status())["refused"] if visit.session.operator else 0
    return {
        "conflicts": conflicts["total"],
        "proposals": evolutions["total"] + slims["total"],
        "approvals": health["proposed"],
        "held": held["total"],
        "expired": health["expired"],
        "refused": refused,
    }

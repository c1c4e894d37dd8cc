"""Where an item stands in its document."""

from __future__ import annotations

from kledger.contract.scopes import Caller
from ledger.event import JsonObject
from producers.operations.desk import Desk
from projections.views.documents.ask import surroundings


async def part_of(desk: Desk, caller: Caller, item_id: str) -> JsonObject | None:
    """Where an item stands in its document, with the chunks before and after it; None where it is no chunk."""
    around = (await desk.view.ask(surroundings, desk.org, caller, [item_id])).get(item_id)
    if around is None:
        return None
    sides = {side: around[side][0]["id"] if around[side] else None for side in ("before", "after")}
    return {name: around[name] for name in ("document", "title", "headings")} | sides

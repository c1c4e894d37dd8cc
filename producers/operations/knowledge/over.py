"""Short memories that are out of recall, which the node has not stated yet: by the log they are still active."""

from __future__ import annotations

from collections.abc import Sequence

from kledger.contract.errors import IllegalState
from ledger.event import utc_now
from producers.operations.desk import ANY, Desk, reach_recalls
from projections.views.knowledge import ask
from projections.views.knowledge.lives import over_among


async def is_over(desk: Desk, item_id: str) -> bool:
    """Whether an active item is a short memory that is out of recall, which the node has not stated yet."""
    return bool(await are_over(desk, [item_id]))


async def are_over(desk: Desk, ids: Sequence[str]) -> set[str]:
    """Those of these items that are active short memories and out of recall, which the node has not stated yet."""
    if not await desk.view.ask(over_among, desk.org, ids, utc_now()):
        return set()
    await reach_recalls(desk, ANY)  # one that is not folded may have renewed its life
    return await desk.view.ask(over_among, desk.org, ids, utc_now())


def over(item_id: str) -> IllegalState:
    """The error for a memory that is over, which the node is about to state."""
    fault = f"{item_id} is over, and within seconds the node states so: restore it then, and change it"
    return IllegalState(fault, id=item_id, status="expired")


async def refuse_over(desk: Desk, item: ask.Standing) -> None:
    """Raise IllegalState for a memory that is over, which the node has not stated yet: as it is active by the log, a
    change would begin its life anew."""
    if item.status == "active" and await is_over(desk, item.id):
        raise over(item.id)

"""What the gate made of events that were appended: for those that no expected position guards.

A change of shared memory depends on the roles of members, which another event can change between the look at the view
and the append. So the answer waits for the judgement. Verdicts, scores and plain revisions expect no position, so that
many may come at once; their answer waits where somebody else wrote to the item between the look and the append.
"""

from __future__ import annotations

from collections.abc import Sequence

from kledger.client.refusals import error_of
from kledger.contract.errors import LedgerError
from producers.operations.desk import Desk
from projections.views.knowledge.ask import Standing
from projections.views.refused import ask


async def refuse_refused(desk: Desk, positions: Sequence[int]) -> None:
    """Wait until the view has these events. Raises what the gate refused the first of them for, ViewBehind."""
    await desk.view.wait_for(max(positions))
    refusal = await desk.view.ask(ask.refusal_among, positions)
    if refusal is not None:
        raise _error(*refusal)


async def refused_meanwhile(desk: Desk, item: Standing, seen: int, positions: Sequence[int]) -> dict[int, LedgerError]:
    """Which of these events of an item the gate refused, each by its position.

    It waits for the fold only where another event of the item came after `item` was looked at, which was on a view at
    the position `seen` or later. Raises ViewBehind.
    """
    first = min(positions)
    if first == seen + 1 or await desk.ledger.next_position_of(desk.org, "knowledge", item.id, item.position) == first:
        return {}
    return await refused_of(desk, positions)


async def refused_of(desk: Desk, positions: Sequence[int]) -> dict[int, LedgerError]:
    """Wait until the view has these events, and say which the gate refused, each by its position. Raises ViewBehind."""
    if not positions:
        return {}
    await desk.view.wait_for(max(positions))
    refused = await desk.view.ask(ask.refusals_among, positions)
    return {position: _error(code, reason) for position, (code, reason) in refused.items()}


def _error(code: str, reason: str) -> LedgerError:
    return error_of({"code": code, "message": f"{reason}; nothing was changed"})

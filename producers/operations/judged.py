"""What the gate made of events that were appended: for those that no expected position can guard.

A change of shared memory depends on the roles of members, which another event can change between the look at the view
and the append. So the answer waits for the judgement.
"""

from __future__ import annotations

from collections.abc import Sequence

from kledger.client.refusals import error_of
from kledger.contract.errors import LedgerError
from producers.operations.desk import Desk
from projections.views.refused import ask


async def refuse_refused(desk: Desk, positions: Sequence[int]) -> None:
    """Wait until the view has these events. Raises what the gate refused the first of them for, ViewBehind."""
    await desk.view.wait_for(max(positions))
    refusal = await desk.view.ask(ask.refusal_among, positions)
    if refusal is not None:
        raise _error(*refusal)


async def refused_of(desk: Desk, positions: Sequence[int]) -> dict[int, LedgerError]:
    """Wait until the view has these events, and say which the gate refused, each by its position. Raises ViewBehind."""
    if not positions:
        return {}
    await desk.view.wait_for(max(positions))
    refused = await desk.view.ask(ask.refusals_among, positions)
    return {position: _error(code, reason) for position, (code, reason) in refused.items()}


def _error(code: str, reason: str) -> LedgerError:
    return error_of({"code": code, "message": f"{reason}; nothing was changed"})

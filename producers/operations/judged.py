"""What the gate made of events that were appended: for those that no expected position can guard.

A change of shared memory depends on the roles of members, which another event can change between the look at the view
and the append. So the answer waits for the judgement.
"""

from __future__ import annotations

from collections.abc import Sequence

from kledger.client.refusals import error_of
from producers.operations.desk import Desk
from projections.views.refused import ask


async def refuse_refused(desk: Desk, positions: Sequence[int]) -> None:
    """Wait until the view has these events. Raises what the gate refused the first of them for, ViewBehind."""
    await desk.view.wait_for(max(positions))
    refusal = await desk.view.ask(ask.refusal_among, positions)
    if refusal is not None:
        code, reason = refusal
        raise error_of({"code": code, "message": f"{reason}; nothing was changed"})

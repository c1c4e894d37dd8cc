"""Refused events: list them, and retry or dismiss a parked one (dead letter)."""

from __future__ import annotations

from difflib import get_close_matches

from kledger.client.refusals import BY_CODE
from kledger.contract.errors import InvalidPayload, UnknownReference
from kledger.contract.scopes import Caller
from ledger.event import JsonObject
from producers.operations.admin.jobs import require_operator
from producers.operations.desk import ANY, Desk, Freshness, reach, require_come
from producers.operations.ports import Job, ParkingAdmin
from projections.views.refused.ask import refused_by_code, refused_events

MOST = 1_000


async def listed(
    desk: Desk, caller: Caller, *, after: int = 0, limit: int = 100, code: str | None = None, freshness: Freshness = ANY
) -> JsonObject:
    """`refused`: the refused events in log order; parked ones with their `state`.

    Raises NotOwner, ViewBehind, InvalidPayload for a position that the log has not, and a code that no error and none
    of these events has.
    """
    require_operator(caller)
    await reach(desk, freshness)
    if after > desk.view.position:
        await require_come(desk, after, "after")
    if code is not None and code not in BY_CODE and code not in await desk.view.ask(refused_by_code):
        raise _unknown(code)
    states = await _parking(desk).states()
    position = desk.view.position
    rows, more = await desk.view.ask(refused_events, after=after, limit=limit, code=code)
    shown = [{**row, **states.get(row["position"], {"state": None})} for row in rows]
    following = {"next": rows[-1]["position"]} if more else {}
    return {"refused": shown, **following, "position": position}


async def dismiss(desk: Desk, caller: Caller, position: int) -> JsonObject:
    """Dismiss a parked event: it stays refused, and no longer causes a warning. Raises NotOwner and as above."""
    require_operator(caller)
    return await _parking(desk).dismiss(position)


async def retry(desk: Desk, caller: Caller, position: int) -> Job:
    """Start a job that folds a parked event at its own position in the log. Raises NotOwner and as above."""
    require_operator(caller)
    return await _parking(desk).start_retry(position)


def _unknown(code: str) -> InvalidPayload:
    near = get_close_matches(code, BY_CODE, 1)
    meant = f"; is {near[0]} meant?" if near else ": ask without a code to see which ones there are"
    message = f"{code!r} is no code of an error{meant}"
    return InvalidPayload(f"code: {message}", errors=[{"field": "code", "reason": message}])


def _parking(desk: Desk) -> ParkingAdmin:
    if desk.parking is None:
        raise UnknownReference("this node keeps no decisions about parked events")
    return desk.parking

"""Reads over all that a caller sees: facets of a list, the overview, and what changed after a position."""

from __future__ import annotations

from datetime import datetime

from kledger.contract.scopes import Caller
from ledger.event import JsonObject, utc_now
from producers.operations.admin.scope_types import require_types
from producers.operations.desk import (
    ANY,
    Desk,
    Freshness,
    moment_of,
    position_as_of,
    reach,
    reach_recalls,
    require_come,
)
from producers.operations.knowledge.reading import check_wanted
from producers.operations.knowledge.unmatched import with_unmatched
from projections.overview import changes as changed
from projections.overview import facets as ask_facets
from projections.overview import numbers as ask_numbers
from projections.views.knowledge.listing import Wanted

LISTS = {
    "total": "/api/knowledge?limit=1000",
    "expired": "/api/knowledge?status=expired&limit=1000",
    "proposed": "/api/knowledge?status=proposed&limit=1000",
    "conflicting": "/api/knowledge?concern=conflicting&limit=1000",
    "never_recalled": "/api/knowledge?concern=never_recalled&limit=1000",
}
"""Where the items are listed that a number counts."""


async def facets(
    desk: Desk,
    caller: Caller,
    wanted: Wanted,
    *,
    as_of: int | datetime | None = None,
    freshness: Freshness = ANY,
) -> JsonObject:
    """What the items have that a list with these filters has. Raises as list_items does."""
    await reach(desk, freshness)
    await check_wanted(desk, wanted)
    then = await position_as_of(desk, as_of, freshness)
    position = desk.view.position if then is None else then
    moment = await moment_of(desk, as_of, then)
    found = await desk.view.ask(ask_facets.facets, desk.org, caller, wanted, then, moment)
    answer = {**found, "position": position}
    return answer if answer["total"] else await with_unmatched(desk, caller, wanted, answer, then, moment)


async def overview(desk: Desk, caller: Caller, days: int, *, freshness: Freshness = ANY) -> JsonObject:
    """The numbers over the items that the caller sees, and their last days. Raises ViewBehind."""
    await reach_recalls(desk, freshness)
    position = desk.view.position
    found = await desk.view.ask(ask_numbers.overview, desk.org, caller, utc_now(), days)
    return {**found, "lists": LISTS, "position": position}


async def changes(
    desk: Desk,
    caller: Caller,
    after: int,
    limit: int,
    followed: changed.Followed = changed.ALL,
    *,
    freshness: Freshness = ANY,
) -> JsonObject:
    """What changed after a position of items that the caller sees. Asks nothing of a view that has not moved since.

    Raises ViewBehind, IllegalScope, and InvalidPayload for a position that the log has not: whoever kept it of another
    log, or of one that was restored from an older copy, would wait for good.
    """
    await reach(desk, freshness)
    await require_types(desk, [*followed.scopes, *filter(None, [followed.owner])])
    position = desk.view.position
    if position < after:
        await require_come(desk, after, "after")
    if position <= after:
        return {"changes": [], "next": after, "position": position}
    found, more = await desk.view.ask(changed.changes, desk.org, caller, after, position, limit, followed)
    following = found[-1]["position"] if more else position
    answer = {"changes": found, "next": following, "position": position}
    if found:
        return answer
    wanted = Wanted(followed.types, followed.scopes, followed.owner)
    return await with_unmatched(desk, caller, wanted, answer, None, utc_now())

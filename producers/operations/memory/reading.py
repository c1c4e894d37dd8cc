"""Reads of memories: one, and the timeline, now or as of a moment."""

from __future__ import annotations

from datetime import datetime

from kledger.contract.errors import Erased, UnknownKnowledge
from kledger.contract.scopes import Caller
from ledger.event import JsonObject, utc_now
from producers.operations.admin.scope_types import require_types
from producers.operations.desk import ANY, Desk, Freshness, moment_of, position_as_of, reach_recalls
from producers.operations.knowledge.unknown import what_to_check
from producers.operations.knowledge.unmatched import with_unmatched
from producers.operations.knowledge.whose import with_their_projects
from producers.operations.outcomes import listed
from projections.fold_kit.page import Window
from projections.views.knowledge import memories as ask
from projections.views.knowledge.listing import Wanted as ListWanted
from projections.views.knowledge.memories import Wanted


def unknown_memory(item_id: str) -> UnknownKnowledge:
    """The error for a memory that does not exist, is no memory, or is not visible to the caller."""
    return UnknownKnowledge(
        f"there is no memory {item_id[:200]!r} that you may see: {what_to_check(item_id)}", id=item_id
    )


async def get(
    desk: Desk,
    caller: Caller,
    item_id: str,
    *,
    as_of: int | datetime | None = None,
    freshness: Freshness = ANY,
) -> JsonObject:
    """One memory. Raises UnknownKnowledge, Erased, InvalidPayload (as_of), ViewBehind."""
    await reach_recalls(desk, freshness)
    then = await position_as_of(desk, as_of, freshness)
    moment = await moment_of(desk, as_of, then)
    memory = await desk.view.ask(ask.memory, desk.org, caller, item_id, then, moment=moment)
    if memory is None:  # a coordinator reads what waits for them, without naming the project
        seeing = await with_their_projects(desk, caller)
        memory = await desk.view.ask(ask.memory, desk.org, seeing, item_id, then, moment=moment)
        if memory is not None and memory["status"] != "proposed":
            raise unknown_memory(item_id)
    if memory is None:
        raise unknown_memory(item_id)
    if memory.pop("erased"):
        raise Erased(
            f"what {item_id} said was erased with the person it belonged to; its history shows when it changed",
            id=item_id,
        )
    if memory["status"] == "rejected":
        memory["reason"] = await desk.view.ask(ask.reason_of_rejection, desk.org, item_id)
    return memory


async def timeline(
    desk: Desk,
    caller: Caller,
    wanted: Wanted,
    window: Window,
    *,
    as_of: int | datetime | None = None,
    freshness: Freshness = ANY,
) -> JsonObject:
    """The memories visible to the caller, the latest first. Raises InvalidPayload (as_of), IllegalScope, ViewBehind."""
    await reach_recalls(desk, freshness)
    await require_types(desk, [*filter(None, [wanted.owner])])
    then = await position_as_of(desk, as_of, freshness)
    position = desk.view.position if then is None else then
    moment = await moment_of(desk, as_of, then)
    if wanted.status == "proposed":
        caller = await with_their_projects(desk, caller)
    page = listed(await desk.view.ask(ask.memories, desk.org, caller, wanted, window, then, moment=moment), position)
    if page["total"]:
        return page
    words = ListWanted(owner=wanted.owner, tags=wanted.tags)
    return await with_unmatched(desk, caller, words, page, then, moment or utc_now(), wanted.kinds)

"""Reads of knowledge: one item, the list, an item's history, and its lineage; now or as of a moment."""

from __future__ import annotations

from datetime import datetime

from kledger.contract.documents import ITEM_TYPE
from kledger.contract.errors import Erased, InvalidPayload, UnknownKnowledge, UnknownReference
from kledger.contract.scopes import Caller
from kledger.contract.words import ItemSort
from ledger.event import JsonObject, utc_now
from ledger.privacy.sealed import ERASED
from producers.operations.admin.scope_types import require_types
from producers.operations.desk import ANY, Desk, Freshness, moment_of, position_as_of, reach, reach_recalls
from producers.operations.knowledge.part import part_of
from producers.operations.knowledge.unknown import unknown
from producers.operations.knowledge.unmatched import with_unmatched
from producers.operations.not_then import not_then
from producers.operations.outcomes import listed
from producers.operations.recording import past_retention
from projections.engine.ahead.between import UNTOUCHED, Untouched
from projections.engine.ahead.just_saved import may_read
from projections.engine.ahead.new_in_list import may_merge, page_with
from projections.fold_kit.page import Window
from projections.views.feedback import ask as feedback
from projections.views.knowledge.ask import whole
from projections.views.knowledge.listing import Wanted, items
from projections.views.knowledge.lives import over_among
from projections.views.knowledge.memory_fields import is_short
from projections.views.knowledge.parts import WHOLE, Part
from projections.views.knowledge.versions import Version, version_of
from projections.views.lineage import ask as lineage
from projections.views.lineage.traces import traces as latest_traces
from projections.views.recalls.ask import past_around
from projections.views.resources import ask as resources


async def get(
    desk: Desk,
    caller: Caller,
    item_id: str,
    *,
    as_of: int | datetime | None = None,
    freshness: Freshness = ANY,
) -> JsonObject:
    """One item with its status, its helpful and harmful histories, and which of its resources are readable.

    Raises UnknownKnowledge, Erased, InvalidPayload (as_of), ViewBehind.
    """
    ahead: JsonObject | Untouched | None = None
    if as_of is None and desk.view.position < freshness.position:
        ahead = await desk.view.item_ahead(desk.org, item_id, freshness.position, freshness.wait)
    if isinstance(ahead, dict):
        return _before_its_fold(desk, caller, item_id, ahead)
    if ahead is not UNTOUCHED:  # else the view has the item as it is at that position
        await reach(desk, freshness)
    then = await position_as_of(desk, as_of, freshness)
    item = await desk.view.ask(feedback.judged_item, desk.org, caller, item_id, then)
    if item is None:
        raise await _not_there(desk, caller, item_id, then)
    if item["content"] == ERASED and await _is_erased(desk, item_id, item["version"]):
        raise Erased(
            f"what {item_id} said was erased with the person it belonged to; its history shows when it changed",
            id=item_id,
        )
    if item["status"] == "active" and is_short(item):
        moment = await moment_of(desk, as_of, then)
        if await desk.view.ask(over_among, desk.org, [item_id], moment, then):
            item["status"] = "expired"
    resource_ids = item["resource_ids"]
    readable = await desk.view.ask(resources.readable_ids, desk.org, caller, resource_ids) if resource_ids else set()
    is_chunk = then is None and ITEM_TYPE in item["types"]
    part = await part_of(desk, caller, item_id) if is_chunk else None
    named = [{"id": name, "readable": name in readable} for name in resource_ids]
    return {**item, "resources": named} | ({} if part is None else {"part": part})


def _before_its_fold(desk: Desk, caller: Caller, item_id: str, row: JsonObject) -> JsonObject:
    """An item that was saved a moment ago, by its row, which the view does not have yet."""
    if not may_read(caller, row):
        raise unknown(item_id)
    desk.tally.saw(row["position"])
    desk.view.shown = max(desk.view.shown, row["position"])
    return {**feedback.unjudged(whole(row)), "resources": []}


async def _not_there(desk: Desk, caller: Caller, item_id: str, then: int | None) -> UnknownKnowledge:
    """The error for an item that is not there, or was not there yet."""
    if then is not None:
        timeline = await desk.view.ask(feedback.life, desk.org, caller, item_id, Part(shorten=0))
        if timeline and timeline[0]:
            return UnknownKnowledge(not_then(f"knowledge {item_id!r}", then, timeline[0]), id=item_id)
    return unknown(item_id)


async def _is_erased(desk: Desk, item_id: str, version: int) -> bool:
    """Whether the content was erased, rather than being a text that only looks like it."""
    row: Version | None = await desk.view.ask(version_of, desk.org, item_id, version)
    return row is not None and row.erased


async def list_items(
    desk: Desk,
    caller: Caller,
    wanted: Wanted,
    window: Window,
    *,
    sort: ItemSort = "newest",
    as_of: int | datetime | None = None,
    freshness: Freshness = ANY,
) -> JsonObject:
    """The items visible to the caller. Raises InvalidPayload (as_of, a filter), IllegalScope (a filter), ViewBehind."""
    if sort != "newest" and window.before is not None:
        raise InvalidPayload(
            f"before goes with sort=newest: in the order {sort} the next page begins at the offset `next`",
            errors=[{"field": "before", "reason": f"does not go with sort={sort}"}],
        )
    if may_merge(wanted, as_of) and (ahead := await _list_ahead(desk, caller, wanted, window, sort, freshness)):
        return ahead if ahead["total"] else await with_unmatched(desk, caller, wanted, ahead, None, utc_now())
    await reach(desk, freshness)
    await check_wanted(desk, wanted)
    then = await position_as_of(desk, as_of, freshness)
    position = desk.view.position if then is None else then
    moment = await moment_of(desk, as_of, then)
    found = listed(await desk.view.ask(items, desk.org, caller, wanted, window, then, moment, sort), position)
    return found if found["total"] else await with_unmatched(desk, caller, wanted, found, then, moment)


async def _list_ahead(
    desk: Desk, caller: Caller, wanted: Wanted, window: Window, sort: ItemSort, freshness: Freshness
) -> JsonObject | None:
    """The list as of a position that the view has not reached; None where it has, or has to."""
    asked = max(freshness.position, desk.view.shown)
    if desk.view.position >= asked or (new := await desk.view.items_ahead(desk.org, asked, freshness.wait)) is None:
        return None
    await check_wanted(desk, wanted)
    found = await desk.view.ask(page_with, desk.org, caller, wanted, window, utc_now(), sort, new)
    if found is None:
        return None
    page, shown = found
    if shown:
        desk.tally.saw(shown)
        desk.view.shown = max(desk.view.shown, shown)
    return listed(page, new.upto)


async def check_wanted(desk: Desk, wanted: Wanted) -> None:
    """Check filters of items. Raises InvalidPayload (nothing can be between them), IllegalScope."""
    for least, most, names in (
        (wanted.min_score, wanted.max_score, ("min_score", "max_score")),
        (wanted.since, wanted.until, ("since", "until")),
    ):
        if least is not None and most is not None and least > most:  # type: ignore[operator]  # both are of one type
            raise InvalidPayload(
                f"{names[0]} {least} is above {names[1]} {most}: nothing is between them; exchange the two",
                errors=[{"field": names[0], "reason": f"is above {names[1]}"}],
            )
    await require_types(desk, [*wanted.scopes, *filter(None, [wanted.owner, wanted.created_by])])


async def history(
    desk: Desk, caller: Caller, item_id: str, part: Part = WHOLE, *, freshness: Freshness = ANY
) -> JsonObject:
    """Versions and cases of an item that the caller may read: the latest, and `next`, where they are more than fit into
    an answer. Raises UnknownKnowledge, ViewBehind.
    """
    await reach(desk, freshness)
    position = desk.view.position

    timeline = await desk.view.ask(feedback.life, desk.org, caller, item_id, part)
    if timeline is None:
        raise unknown(item_id)
    versions, cases, earlier = timeline
    found = {"id": item_id, "versions": versions, "feedback": cases, "position": position}
    return found if earlier is None else {**found, "next": earlier}


async def traces(
    desk: Desk, caller: Caller, *, limit: int = 20, before: int | None = None, freshness: Freshness = ANY
) -> JsonObject:
    """The latest traces of which the caller may know something (TraceList). Raises ViewBehind."""
    await reach(desk, freshness)
    position = desk.view.position
    found = await desk.view.ask(latest_traces, desk.org, caller, limit, before)
    following = found[-1]["position"] if len(found) == limit else None
    return {"results": found, "count": len(found), "next": following, "position": position}


async def links(desk: Desk, caller: Caller, ref: str, *, freshness: Freshness = ANY) -> JsonObject:
    """The lineage of an item, `trace:ID`, `message:ID` or `event:ID`, in both directions.

    Raises UnknownReference when nothing that the caller may read names it, PastRetention when an item or a trace is
    named by nothing but recalls whose detail is gone, ViewBehind.
    """
    await reach_recalls(desk, freshness)
    position = desk.view.position

    lineage_of_ref = await desk.view.ask(lineage.links, desk.org, caller, ref)
    past = await desk.view.ask(past_around, desk.org, caller, ref)
    if lineage_of_ref is None and past:
        raise past_retention(f"what is left of {ref[:300]!r}, {past} recalls,", ref=ref)
    if lineage_of_ref is None:
        raise UnknownReference(
            f"nothing that you may see names {ref[:300]!r}: give an item's id, trace:ID, message:ID or event:ID",
            ref=ref,
        )
    named, edges, may_be_more = lineage_of_ref
    more = {"more": True} if may_be_more else {}
    older = {"past_retention": past} if past else {}
    return {"ref": ref, "events": named, "edges": edges, **more, **older, "position": position}

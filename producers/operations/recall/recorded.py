"""Reads of recalls that were recorded: which served an item, which are the caller's, and what one of them said."""

from __future__ import annotations

from kledger.contract.errors import UnknownReference
from kledger.contract.scopes import Caller
from ledger import one_answer
from ledger.event import JsonObject
from producers.operations.desk import ANY, Desk, Freshness, reach_recalls
from producers.operations.knowledge.unknown import unknown
from producers.operations.outcomes import listed
from producers.operations.recording import past_retention
from projections.fold_kit.page import Window
from projections.views.knowledge.ask import standings
from projections.views.recalls import ask
from projections.views.recalls.ask import Recalls, Wanted

NOTHING = Recalls([], 0, None)


async def of_item(
    desk: Desk,
    caller: Caller,
    item_id: str,
    window: Window,
    *,
    counts: bool | None = None,
    freshness: Freshness = ANY,
) -> JsonObject:
    """The caller's recalls that served an item (RecallsOfItem); those that count, or looks at pages alone.

    Raises UnknownKnowledge, ViewBehind.
    """
    await reach_recalls(desk, freshness)
    position = desk.view.position
    if not await desk.view.ask(standings, desk.org, caller, [item_id]):
        raise unknown(item_id)
    found = await desk.view.ask(ask.of_item, desk.org, caller, item_id, window, counts)
    return {"id": item_id} | _listed(found, position)


async def recalls(
    desk: Desk, caller: Caller, wanted: Wanted, window: Window, *, freshness: Freshness = ANY
) -> JsonObject:
    """The caller's recalls, newest first (RecallList). An item that the caller does not see is in none of them.

    Raises ViewBehind.
    """
    await reach_recalls(desk, freshness)
    position = desk.view.position
    if wanted.item is not None and not await desk.view.ask(standings, desk.org, caller, [wanted.item]):
        return _listed(NOTHING, position)
    return _listed(await desk.view.ask(ask.recalls, desk.org, caller, wanted, window), position)


async def recall(desk: Desk, caller: Caller, recall_id: str, *, freshness: Freshness = ANY) -> JsonObject:
    """One recall of the caller's with what it served, as it was served (RecallShown).

    Raises UnknownReference, PastRetention, ViewBehind.
    """
    await reach_recalls(desk, freshness)
    shown = await desk.view.ask(ask.recall, desk.org, caller, recall_id)
    if shown is None:
        if (position := await desk.view.ask(ask.past_retention, desk.org, caller, recall_id)) is not None:
            raise past_retention(f"what the recall {recall_id} served, at position {position},", position=position)
        raise UnknownReference(
            f"there is no recall {recall_id[:300]!r} of yours: an answer names its own as recall_id",
            ref=recall_id,
        )
    return {**shown, "results": one_answer.with_room(shown["results"])}


def _listed(found: Recalls, position: int) -> JsonObject:
    older = {"past_retention": found.past} if found.past else {}
    return listed(found, position) | older

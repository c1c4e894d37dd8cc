"""What does the ledger know? One item, the list, an item's whole life, and its lineage; now or as of then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from kledger.contract.errors import Erased, UnknownKnowledge, UnknownReference
from kledger.contract.scopes import Caller
from ledger.event import JsonObject
from ledger.privacy.sealed import ERASED
from producers.operations.admin.scope_types import require_types
from producers.operations.desk import ANY, Desk, Freshness, position_as_of, reach
from producers.operations.knowledge.changes import unknown
from producers.operations.not_then import not_then
from projections.views.feedback import ask as feedback
from projections.views.knowledge import listing
from projections.views.knowledge.versions import Version, version_of
from projections.views.lineage import ask as lineage
from projections.views.resources import ask as resources


@dataclass(frozen=True, slots=True)
class Listed:
    """One page, newest first: `count` are those on it, `total` all that fit, `next` is where the next page begins."""

    results: list[JsonObject]
    count: int
    total: int
    next: int | None
    position: int


@dataclass(frozen=True, slots=True)
class History:
    """An item's versions and the cases that judged it, oldest first."""

    id: str
    versions: list[JsonObject]
    feedback: list[JsonObject]
    position: int


@dataclass(frozen=True, slots=True)
class Links:
    """What a reference came from and what came of it: `events`, each once with its role, and the `edges` of them."""

    ref: str
    events: list[JsonObject]
    edges: list[JsonObject]
    position: int


async def get(
    desk: Desk,
    caller: Caller,
    item_id: str,
    *,
    as_of: int | datetime | None = None,
    freshness: Freshness = ANY,
) -> JsonObject:
    """One item with its status, its helpful and harmful histories (source 001), and which of its resources are there.

    Raises UnknownKnowledge, Erased, InvalidPayload (as_of), ViewBehind.
    """
    await reach(desk, freshness)
    then = None if as_of is None else await position_as_of(desk, as_of, freshness)

    found = await desk.view.ask(feedback.judged_item, desk.org, caller, item_id, then)
    if found is None:
        if then is not None and (life := await desk.view.ask(feedback.life, desk.org, caller, item_id)) and life[0]:
            raise UnknownKnowledge(not_then(f"knowledge {item_id!r}", then, life[0]), id=item_id)
        raise unknown(item_id)
    if found["content"] == ERASED and await _is_erased(desk, item_id, found["version"]):
        raise Erased(
            f"what {item_id} said was erased with the person it belonged to; its history shows when it changed",
            id=item_id,
        )
    named = found["resource_ids"]
    readable = await desk.view.ask(resources.readable_ids, desk.org, caller, named) if named else set()
    return {**found, "resources": [{"id": name, "readable": name in readable} for name in named]}


async def _is_erased(desk: Desk, item_id: str, version: int) -> bool:
    """Whether the content was erased, or is what somebody wrote."""
    said: Version | None = await desk.view.ask(version_of, desk.org, item_id, version)
    return said is not None and said.erased


async def list_items(
    desk: Desk,
    caller: Caller,
    *,
    limit: int = 10,
    offset: int = 0,
    before: int | None = None,
    types: Sequence[str] = (),
    scopes: Sequence[str] = (),
    owner: str | None = None,
    visibility: Sequence[str] = (),
    status: str = "active",
    as_of: int | datetime | None = None,
    freshness: Freshness = ANY,
) -> Listed:
    """The items that the caller sees. Raises InvalidPayload (as_of), IllegalScope (a filter), ViewBehind."""
    await reach(desk, freshness)
    await require_types(desk, [*scopes, *filter(None, [owner])])
    then = None if as_of is None else await position_as_of(desk, as_of, freshness)
    position = desk.view.position if then is None else then
    found = await desk.view.ask(
        listing.items,
        desk.org,
        caller,
        limit=limit,
        offset=offset,
        before=before,
        types=types,
        scopes=scopes,
        owner=owner,
        visibility=visibility,
        status=status,
        as_of=then,
    )
    return Listed(found.results, len(found.results), found.total, found.next, position)


async def history(desk: Desk, caller: Caller, item_id: str, *, freshness: Freshness = ANY) -> History:
    """An item's whole life, as far as the caller may read it. Raises UnknownKnowledge, ViewBehind."""
    await reach(desk, freshness)
    position = desk.view.position

    found = await desk.view.ask(feedback.life, desk.org, caller, item_id)
    if found is None:
        raise unknown(item_id)
    versions, cases = found
    return History(item_id, versions, cases, position)


async def links(desk: Desk, caller: Caller, ref: str, *, freshness: Freshness = ANY) -> Links:
    """The lineage of an item, `trace:ID`, `message:ID`, `event:ID`, both ways.

    Raises UnknownReference when nothing that the caller may read names it, ViewBehind.
    """
    await reach(desk, freshness)
    position = desk.view.position

    found = await desk.view.ask(lineage.links, desk.org, caller, ref)
    if found is None:
        raise UnknownReference(
            f"nothing that you may see names {ref[:300]!r}: give an item's id, trace:ID, message:ID or event:ID",
            ref=ref,
        )
    return Links(ref, *found, position)

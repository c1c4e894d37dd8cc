"""Versions of one fact: which of two items is in force, the earlier one or the later one that names it.

The later one is, unless its confidence is lower by SUPERSEDING_MARGIN or more: then the two are in conflict.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from kledger.contract.errors import VersionConflict
from kledger.contract.projects import SUPERSEDING_MARGIN, is_shared_kind
from kledger.contract.scopes import Caller
from kledger.contract.words import ItemStatus
from ledger.event import Appended, JsonObject, Lineage, NewEvent
from ledger.events.conflict import ConflictRecorded
from ledger.events.knowledge import KnowledgeSuperseded
from ledger.item_status import fault_of_status
from ledger.named_ids import named_id
from producers.operations.desk import Desk, folded
from producers.operations.judged import refuse_refused
from producers.operations.knowledge.unknown import unknown
from producers.operations.knowledge.whose import changer
from producers.operations.outcomes import ATTEMPTS
from producers.operations.publish import NAMESPACE, publish
from producers.operations.stated_before import events_of_key, past_actors
from producers.operations.stating import not_owner
from projections.views.knowledge import ask

MOST_VERSIONS = 1_000
"""So many versions of one fact are followed to the one that is in force."""
_ROUNDING = 1e-9


class Superseding(NamedTuple):
    """What comes of an item that names an earlier one: the event that says so, or None where that one is gone."""

    event: NewEvent | None = None
    superseded: str | None = None
    conflict: str | None = None
    position: int = 0
    """Where the event is in the log, once it is."""


async def check_superseding(desk: Desk, caller: Caller, earlier_id: str, status: ItemStatus) -> None:
    """Check that a new item may name the earlier one: the caller sees it and, where the new item is no proposal, may
    change it. Raises UnknownKnowledge, NotOwner, ViewBehind."""
    await folded(desk, "knowledge", earlier_id)
    earlier = await desk.view.ask(ask.standing, desk.org, caller, earlier_id)
    if earlier is None:
        raise unknown(earlier_id)
    if status == "active" and await changer(desk, caller, earlier) is None:
        raise not_owner(f"say what supersedes {earlier_id}, which {earlier.owner} owns", earlier.owner, caller)


async def supersede(
    desk: Desk, caller: Caller, seeing: Caller, lineage: Lineage, later: JsonObject, actor: str, cause: str
) -> Superseding:
    """What comes of an item that is in force from now on and names an earlier one, which is looked for as `seeing` and
    changed as the caller. `actor` records a conflict; `cause`, the event by which the later one came in force, names
    the event that follows from it."""
    found = await _in_force(desk, seeing, later)
    if found is None:
        return Superseding()
    standing, earlier, last = found
    lower = earlier["eval"]["confidence"] - later["eval"]["confidence"]
    theirs = await changer(desk, caller, standing)
    own_id = _own_id(cause)
    if theirs is not None and lower < SUPERSEDING_MARGIN - _ROUNDING:
        fact = KnowledgeSuperseded(by=later["id"])
        event = NewEvent(fact, standing.id, theirs, desk.org, lineage, id=own_id, expects=last)
        return Superseding(event, superseded=standing.id)
    reason = f"{later['id']} is to take the place of {standing.id}" + (
        f", and is less sure by {lower:.2f}" if theirs is not None else f", which {standing.owner} owns"
    )
    recorded = ConflictRecorded(
        first=standing.id,
        first_version=standing.version,
        second=later["id"],
        second_version=later["version"],
        reason=reason,
    )
    conflict_id = f"conflict-{named_id(NAMESPACE, f'{cause} conflict').replace('-', '')[:16]}"
    return Superseding(NewEvent(recorded, conflict_id, actor, desk.org, lineage, id=own_id), conflict=conflict_id)


async def _in_force(desk: Desk, caller: Caller, later: JsonObject) -> tuple[ask.Standing, JsonObject, int] | None:
    """The version of the fact that is in force, or proposed, before the later one: the item that this names, or what
    took the place of that; with its last position. None where there is none that the caller sees."""
    earlier_id, seen = later.get("supersedes"), {later["id"]}
    while earlier_id is not None and earlier_id not in seen and len(seen) <= MOST_VERSIONS:
        seen.add(earlier_id)
        last = await folded(desk, "knowledge", earlier_id)
        standing = await desk.view.ask(ask.standing, desk.org, caller, earlier_id)
        earlier = await desk.view.ask(ask.item, desk.org, caller, earlier_id)
        if standing is None or earlier is None:
            return None
        if fault_of_status(KnowledgeSuperseded.name, earlier_id, standing.status) is None:
            return standing, earlier, last
        earlier_id = earlier.get("superseded_by")
    return None


async def came_of(desk: Desk, caller: Caller, item_id: str, cause: str) -> Superseding:
    """What came of an item when it came in force, from the events that the log holds under the cause's name."""
    later = await desk.view.ask(ask.item, desk.org, caller, item_id) or {}
    about = [each for each in (item_id, later.get("supersedes")) if each is not None]
    actors = set(caller.reading_as()).union(*[await past_actors(desk, caller, each) for each in about])
    own_id = _own_id(cause)
    event = (await events_of_key(desk, actors, [own_id])).get(own_id)
    if event is None:
        return Superseding()
    if event.type == KnowledgeSuperseded.name:
        return Superseding(superseded=event.entity_id, position=event.position)
    return Superseding(conflict=event.entity_id, position=event.position)


def _own_id(cause: str) -> str:
    return named_id(NAMESPACE, f"{cause}\nsuperseded")


async def came_to_be(
    desk: Desk, caller: Caller, lineage: Lineage, item: ask.Standing, appended: Sequence[Appended]
) -> tuple[int, ItemStatus | None]:
    """The last position after events that the gate accepted, and of a kind that projects share the status that they
    made of the item; `item` is from before.

    One that is in force by them supersedes the item that it names. Raises what the gate refused an event for.
    """
    position, shared = appended[-1].position, is_shared_kind(item.kind)
    if not shared and item.supersedes is None:
        return position, None
    await refuse_refused(desk, [each.position for each in appended])
    now = await desk.view.ask(ask.standing, desk.org, caller, item.id) or item
    if now.status == "active" != item.status and item.supersedes is not None:
        position = max(position, await supersede_now(desk, caller, lineage, item.id, appended[0].event_id))
    return position, now.status if shared else None


async def came_to_be_before(
    desk: Desk, caller: Caller, item_id: str, position: int, cause: str
) -> tuple[int, ItemStatus | None]:
    """What `came_to_be` answered to an earlier request."""
    status: ItemStatus | None = await desk.view.ask(ask.shared_status_at, desk.org, item_id, position)
    return max(position, (await came_of(desk, caller, item_id, cause)).position), status


async def supersede_now(desk: Desk, caller: Caller, lineage: Lineage, item_id: str, cause: str) -> int:
    """Publish what comes of an item that was saved and is in force, once; its position, 0 where nothing comes of it.

    Raises VersionConflict, BrokerUnavailable, ViewBehind.
    """
    for _ in range(ATTEMPTS):
        await folded(desk, "knowledge", item_id)
        later = await desk.view.ask(ask.item, desk.org, caller, item_id)
        if later is None:
            return 0
        if (before := await came_of(desk, caller, item_id, cause)).position or later["status"] != "active":
            return before.position
        event = (await supersede(desk, caller, caller, lineage, later, later["owner"], cause)).event
        try:
            return 0 if event is None else (await publish(desk.ledger, desk.tally, [event]))[0].position
        except VersionConflict:
            continue
    raise VersionConflict(
        f"{item_id} is kept and in force, and others keep writing to what it is to supersede: send the same again",
        id=item_id,
    )

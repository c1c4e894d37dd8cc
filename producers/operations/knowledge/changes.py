"""Changes of one knowledge item: retire, restore, and the conflict-checked append of any change by its owner.

A change that only the owner may make is published with the owner as its actor. Before an event is appended it is
judged on a view that has folded the item's whole history, so that an interface never accepts what the gate refuses.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from functools import partial

from kledger.answers.parts import Moved
from kledger.contract.errors import (
    IllegalState,
    NotOwner,
    UnknownKnowledge,
    VersionConflict,
)
from kledger.contract.scopes import Caller
from kledger.contract.words import ItemStatus
from ledger.event import Fact, JsonObject, Lineage, NewEvent
from ledger.events.knowledge import KnowledgeRestored, KnowledgeRetired
from ledger.item_status import MAKES, fault_of_status
from producers.operations.desk import Desk, folded
from producers.operations.knowledge.over import is_over, over, refuse_over
from producers.operations.knowledge.superseding import came_to_be, came_to_be_before
from producers.operations.knowledge.unknown import unknown
from producers.operations.knowledge.whose import acting_as, coordinator
from producers.operations.outcomes import ATTEMPTS, others_write_to
from producers.operations.publish import event_id, publish
from producers.operations.stated_before import (
    earlier_event,
    past_actors,
    request_fields,
)
from projections.views.knowledge import ask
from projections.views.lineage.ask import StatedEvent


async def latest(desk: Desk, caller: Caller, item_id: str) -> tuple[ask.Standing, int]:
    """An item with its whole history folded, and its last position. Raises UnknownKnowledge, ViewBehind."""
    last = await folded(desk, "knowledge", item_id)
    item = await desk.view.ask(ask.standing, desk.org, caller, item_id)
    if item is None:
        raise unknown(item_id)
    return item, last


async def owned(
    desk: Desk, caller: Caller, item_id: str, *, as_coordinator: bool = False
) -> tuple[ask.Standing, int, str]:
    """An item that the caller may change, the last position of its history, and the entity as which they do: its owner,
    or `as_coordinator` of the projects that share it.

    Raises UnknownKnowledge, NotOwner, ViewBehind.
    """
    item, last = await latest(desk, caller, item_id)
    return item, last, acting_as(caller, item, await coordinator(desk, caller, item) if as_coordinator else None)


async def retire(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    item_id: str,
    reason: str | None = None,
    retry: uuid.UUID | None = None,
    expected_version: int | None = None,
) -> Moved:
    """Retire an item: no search returns it.

    Raises UnknownKnowledge, NotOwner, IllegalState, VersionConflict (`expected_version`), BrokerUnavailable.
    """
    fact, check = KnowledgeRetired(reason=reason), partial(refuse_other_version, expected=expected_version)
    return await publish_change(desk, caller, lineage, item_id, fact, check, retry=retry, as_coordinator=True)


async def restore(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    item_id: str,
    reason: str | None = None,
    retry: uuid.UUID | None = None,
    expected_version: int | None = None,
) -> Moved:
    """Restore an item that is retired, expired or superseded.

    Raises UnknownKnowledge, NotOwner, IllegalState, VersionConflict (`expected_version`), BrokerUnavailable.
    """
    fact, check = KnowledgeRestored(reason=reason), partial(refuse_other_version, expected=expected_version)
    try:
        return await publish_change(desk, caller, lineage, item_id, fact, check, retry=retry, as_coordinator=True)
    except IllegalState:
        if await is_over(desk, item_id):  # the log still has it active
            raise over(item_id) from None
        raise


def refuse_status(fact: Fact, item: ask.Standing) -> None:
    """Raise IllegalState where the item's status does not allow the event."""
    if (fault := fault_of_status(fact.name, item.id, item.status)) is not None:
        raise IllegalState(fault, id=item.id, status=item.status)


def refuse_other_version(item: ask.Standing, expected: int | None) -> None:
    """Raise VersionConflict where the item is at another version than was expected; with None, any is."""
    if expected not in (None, item.version):
        raise VersionConflict(
            f"{item.id} is at version {item.version}, you expected {expected}: read it again and decide anew",
            id=item.id,
            current_version=item.version,
        )


async def owned_or_earlier(
    desk: Desk,
    caller: Caller,
    item_id: str,
    own_id: str,
    fields: JsonObject,
    retry: uuid.UUID | None,
    *,
    as_coordinator: bool = False,
) -> StatedEvent | tuple[ask.Standing, int, str]:
    """The event of an earlier request with the key, whoever owns the item now; else the result of `owned`."""

    async def before() -> StatedEvent | None:
        if retry is None:
            return None
        return await earlier_event(desk, await past_actors(desk, caller, item_id), own_id, fields)

    try:
        standing = await owned(desk, caller, item_id, as_coordinator=as_coordinator)
    except (NotOwner, UnknownKnowledge):
        if (event := await before()) is None:
            raise
        return event
    return await before() or standing  # queried after the item, so it is at least as new as its state


async def publish_change(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    item_id: str,
    fact: Fact,
    check: Callable[[ask.Standing], None] | None = None,
    *,
    retry: uuid.UUID | None,
    as_coordinator: bool = False,
) -> Moved:
    """Publish a change by the owner, or by a coordinator, on the item as it is now; `check` raises where the caller may
    not make it of this item.

    Raises UnknownKnowledge, NotOwner, IllegalState, VersionConflict, BrokerUnavailable, ViewBehind.
    """
    own_id = event_id(retry)
    for _ in range(ATTEMPTS):
        earlier = await owned_or_earlier(
            desk, caller, item_id, own_id, request_fields(fact), retry, as_coordinator=as_coordinator
        )
        if isinstance(earlier, StatedEvent):
            return _moved(item_id, own_id, *await came_to_be_before(desk, caller, item_id, earlier.position, own_id))
        item, last, actor = earlier
        refuse_status(fact, item)
        if check is not None:
            check(item)
        if fact.name not in MAKES:
            await refuse_over(desk, item)
        event = NewEvent(fact, item_id, actor, desk.org, lineage, id=own_id, expects=last)
        try:
            (appended,) = await publish(desk.ledger, desk.tally, [event])
        except VersionConflict:
            continue
        return _moved(item_id, own_id, *await came_to_be(desk, caller, lineage, item, [appended]))
    raise others_write_to(item_id)


def _moved(item_id: str, own_id: str, position: int, status: ItemStatus | None) -> Moved:
    moved = Moved(id=item_id, position=position, event_id=own_id)
    if status is not None:
        moved["status"] = status
    return moved

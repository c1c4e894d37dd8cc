"""Which resources are saved with an item? Each is what its own save would be, with the item's owner and scopes.

They stand in one atomic batch with the item, before it: what is refused keeps nothing. One that says already what it
is to say appends nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from ledger.errors import VersionConflict
from ledger.event import Lineage, NewEvent
from ledger.events.knowledge import KnowledgeSaved
from ledger.scopes import Caller
from producers.operations.desk import Desk
from producers.operations.resource_stating import addressed, refuse_another, resource_now, saving, says_the_same
from producers.operations.stated_before import ATTEMPTS
from producers.publish import event_id, publish, refuse_unkeepable
from producers.resource_requests import ResourceRequest
from projections.resources import ask


async def together(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    resources: Sequence[ResourceRequest],
    item: KnowledgeSaved,
    retry: uuid.UUID | None = None,
) -> list[NewEvent]:
    """The events of the resources that are saved with `item`, to be kept in one batch with it.

    Raises NotOwner, Forbidden, VersionConflict (another version than was expected), IllegalState (its secret was
    destroyed), NotAvailable (no vault), InvalidPayload, SubjectForgotten, BrokerUnavailable, ViewBehind.
    """
    events = []
    for stated in resources:
        payload, now, last = await _beside(desk, caller, stated, item)
        owner, scopes = addressed(caller, payload, now)
        if now is None or not await says_the_same(desk, payload, scopes, now):
            own_id = _own_id(retry, payload)
            event = await saving(desk, lineage, payload, now, last, (owner, scopes), own_id)
            refuse_unkeepable(event.fact)
            events.append(event)
    return events


async def keep_alone(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    resources: Sequence[ResourceRequest],
    item: KnowledgeSaved,
    retry: uuid.UUID | None = None,
) -> None:
    """Keep what the resources of an item say anew that is there already and says the same. Raises as `together`."""
    for _ in range(ATTEMPTS):
        if not (events := await together(desk, caller, lineage, resources, item, retry)):
            return
        try:
            await publish(desk.ledger, desk.tally, events)
        except VersionConflict:
            continue
        return
    raise VersionConflict("others keep writing to the resources of this item: try again")


async def refuse_others(
    desk: Desk,
    caller: Caller,
    resources: Sequence[ResourceRequest],
    item: KnowledgeSaved,
    retry: uuid.UUID,
) -> None:
    """Raise IdempotencyMismatch when the item was kept under this key with resources that said something else."""
    for stated in resources:
        payload, now, _ = await _beside(desk, caller, stated, item)
        owner, scopes = addressed(caller, payload, now)
        await refuse_another(desk, payload, owner, scopes, _own_id(retry, payload))


async def _beside(
    desk: Desk, caller: Caller, stated: ResourceRequest, item: KnowledgeSaved
) -> tuple[ResourceRequest, ask.Standing | None, int]:
    """A resource with what the item says for it, and as it stands; one that is there keeps its owner."""
    now, last = await resource_now(desk, caller, stated.id)
    owner = stated.owner or (item.owner if now is None else None)
    return stated.model_copy(update={"owner": owner, "scopes": stated.scopes or item.scopes}), now, last


def _own_id(retry: uuid.UUID | None, payload: ResourceRequest) -> str:
    return event_id(retry, f"resource {payload.id}")

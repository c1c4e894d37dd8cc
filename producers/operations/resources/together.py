"""Resources saved with an item: each as in a save of its own, with the item's owner and scopes as defaults.

They are appended in one atomic batch with the item, before it. A resource without a difference appends nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from kledger.contract.errors import VersionConflict
from kledger.contract.scopes import Caller
from kledger.requests.resources import MOST_TOGETHER, ResourceRequest
from ledger.event import Lineage, NewEvent
from ledger.events.knowledge import KnowledgeSaved
from producers.operations.desk import Desk
from producers.operations.publish import event_id, publish, refuse_unkeepable
from producers.operations.resources.stating import (
    addressed,
    is_unchanged,
    refuse_other_save,
    refuse_unkept,
    resource_now,
    saving,
)
from producers.operations.stated_before import ATTEMPTS, events_of_key, possible_actors, refuse_extra
from projections.views.resources import ask


async def together(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    resources: Sequence[ResourceRequest],
    item: KnowledgeSaved,
    retry: uuid.UUID | None = None,
) -> list[NewEvent]:
    """The events of the resources that are saved with `item`, to be appended in one batch with it.

    Raises NotOwner, Forbidden, VersionConflict (another version than was expected), IllegalState (its secret was
    destroyed), NotAvailable (no vault), InvalidPayload, SubjectForgotten, BrokerUnavailable, ViewBehind.
    """
    events = []
    for number, resource in enumerate(resources):
        payload, now, last = await _with_defaults(desk, caller, resource, item)
        owner, scopes = addressed(caller, payload, now)
        if now is None or not await is_unchanged(desk, payload, scopes, now):
            own_id = event_id(retry, f"resource#{number}")
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
    """Save the changed resources of an item that is itself unchanged. Raises as `together`."""
    if retry is not None and await refuse_others(desk, caller, resources, item, retry):
        return
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
    kept_at: int = 0,
) -> bool:
    """Whether the resources came with this key before; `kept_at` is the position of the item's save under it, or 0.

    An unchanged resource has no event. Raises IdempotencyMismatch where the resources of the key differ in number,
    order or content.
    """
    resolved = [await _with_defaults(desk, caller, resource, item) for resource in resources]
    addresses = [addressed(caller, payload, now) for payload, now, _ in resolved]
    actors = possible_actors(caller, item.owner).union(owner for owner, _ in addresses)
    numbered = [event_id(retry, f"resource#{number}") for number in range(MOST_TOGETHER)]
    named = [event_id(retry, f"resource {payload.id}") for payload, *_ in resolved]  # the form of earlier versions
    events_by_id = await events_of_key(desk, actors, [*numbered, *named])
    if not events_by_id and not kept_at:
        return False
    refuse_extra(events_by_id, [*numbered[: len(resolved)], *named])
    then = kept_at or min(event.position for event in events_by_id.values())
    for number, (payload, *_) in enumerate(resolved):
        owner, scopes = addresses[number]
        own_id = next((each for each in (numbered[number], named[number]) if each in events_by_id), None)
        if own_id is not None:
            await refuse_other_save(desk, payload, owner, scopes, own_id, actors)
        else:
            before = await desk.view.ask(ask.standing, desk.org, caller, payload.id, then)
            await refuse_unkept(desk, payload, scopes, before)
    return True


async def _with_defaults(
    desk: Desk, caller: Caller, resource: ResourceRequest, item: KnowledgeSaved
) -> tuple[ResourceRequest, ask.Standing | None, int]:
    """A resource with the item's scopes and, where it is new, its owner as defaults; and its current state."""
    now, last = await resource_now(desk, caller, resource.id)
    owner = resource.owner or (item.owner if now is None else None)
    return resource.model_copy(update={"owner": owner, "scopes": resource.scopes or item.scopes}), now, last

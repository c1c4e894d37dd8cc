"""Which resources are saved with an item? Each is what its own save would be, with the item's owner and scopes.

They stand in one atomic batch with the item, before it: what is refused keeps nothing. One that says already what it
is to say appends nothing.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from kledger.contract.errors import VersionConflict
from kledger.contract.scopes import Caller
from ledger.event import Lineage, NewEvent
from ledger.events.knowledge import KnowledgeSaved
from producers.operations.desk import Desk
from producers.operations.publish import event_id, publish, refuse_unkeepable
from producers.operations.resources.stating import (
    addressed,
    refuse_another,
    refuse_unkept,
    resource_now,
    saving,
    says_the_same,
)
from producers.operations.stated_before import ATTEMPTS, made, may_state, refuse_more
from producers.requests.resources import MOST_TOGETHER, ResourceRequest
from projections.views.resources import ask


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
    for number, stated in enumerate(resources):
        payload, now, last = await _beside(desk, caller, stated, item)
        owner, scopes = addressed(caller, payload, now)
        if now is None or not await says_the_same(desk, payload, scopes, now):
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
    """Keep what the resources of an item say anew that is there already and says the same. Raises as `together`."""
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
    """Whether the resources came with this key before, which kept the item at `kept_at`, 0 where it did not.

    A resource that said already what it was to say has no event. Raises IdempotencyMismatch where other resources came
    with the key: one more, one less, another one in a place, or one that said something else.
    """
    found = [await _beside(desk, caller, stated, item) for stated in resources]
    addresses = [addressed(caller, payload, now) for payload, now, _ in found]
    actors = may_state(caller, item.owner).union(owner for owner, _ in addresses)
    numbered = [event_id(retry, f"resource#{number}") for number in range(MOST_TOGETHER)]
    named = [event_id(retry, f"resource {payload.id}") for payload, *_ in found]  # what the ids were made of before
    kept = await made(desk, actors, [*numbered, *named])
    if not kept and not kept_at:
        return False
    refuse_more(kept, [*numbered[: len(found)], *named])
    then = kept_at or min(event.position for event in kept.values())
    for number, (payload, *_) in enumerate(found):
        owner, scopes = addresses[number]
        own_id = next((each for each in (numbered[number], named[number]) if each in kept), None)
        if own_id is not None:
            await refuse_another(desk, payload, owner, scopes, own_id, actors)
        else:
            before = await desk.view.ask(ask.standing, desk.org, caller, payload.id, then)
            await refuse_unkept(desk, payload, scopes, before)
    return True


async def _beside(
    desk: Desk, caller: Caller, stated: ResourceRequest, item: KnowledgeSaved
) -> tuple[ResourceRequest, ask.Standing | None, int]:
    """A resource with what the item says for it, and as it stands; one that is there keeps its owner."""
    now, last = await resource_now(desk, caller, stated.id)
    owner = stated.owner or (item.owner if now is None else None)
    return stated.model_copy(update={"owner": owner, "scopes": stated.scopes or item.scopes}), now, last

"""Changes of one knowledge item: save, retire, restore, and the conflict-checked append of any change by its owner.

A change that only the owner may make is published with the owner as its actor. Before an event is appended it is
judged on a view that has folded the item's whole history, so that an interface never accepts what the gate refuses.
"""

from __future__ import annotations

import base64
import contextlib
import re
import secrets
import uuid
from collections.abc import Callable, Collection, Sequence

from kledger.answers.knowledge import SavedItem
from kledger.answers.parts import Moved, Saved
from kledger.contract.errors import (
    IllegalState,
    KnowledgeExists,
    NotOwner,
    UnknownKnowledge,
    VersionConflict,
    ViewBehind,
)
from kledger.contract.scopes import Caller
from kledger.contract.words import ItemStatus
from kledger.requests.knowledge import SaveRequest
from ledger.event import Fact, JsonObject, Lineage, NewEvent, utc_now
from ledger.events.knowledge import KnowledgeRestored, KnowledgeRetired, KnowledgeSaved, KnowledgeShared
from ledger.item_status import MAKES, fault_of_status
from ledger.named_ids import named_id
from ledger.readers import readers
from producers.operations.admin.scope_types import require_types
from producers.operations.desk import ANY, Desk, folded, reach_head, reach_recalls
from producers.operations.first_cases import refuse_cases
from producers.operations.judged import refuse_refused
from producers.operations.knowledge.acl import first_acl, named_entities, share_id, shared_with_it, statement
from producers.operations.knowledge.proposing import first_status, waits_for_a_project
from producers.operations.knowledge.superseding import came_to_be, came_to_be_before, check_superseding, supersede_now
from producers.operations.knowledge.unknown import unknown
from producers.operations.knowledge.unreadable import Referring, warnings
from producers.operations.knowledge.whose import acting_as, coordinator
from producers.operations.outcomes import ATTEMPTS, as_saved, others_write_to
from producers.operations.publish import NAMESPACE, event_id, mismatch, publish, publish_judged
from producers.operations.resources.together import keep_alone, refuse_others, together
from producers.operations.stated_before import (
    earlier_event,
    past_actors,
    possible_actors,
    refuse_other_save,
    request_fields,
    same_statement,
)
from producers.operations.stating import lineage_of, saved_fact, signed
from projections.views.knowledge import ask
from projections.views.knowledge.lives import over_among
from projections.views.lineage import ask as events
from projections.views.lineage.ask import StatedEvent

_FRESH = re.compile(r"knowledge-\d{8}-[a-z2-7]{8}")
"""The form of the ids that `fresh_id` returns."""
_FIRST = {"helpful", "harmful", "confidence", "origin"}
"""Fields of a save that are not part of the item's statement (`ask.statement_of`)."""


async def save(
    desk: Desk, caller: Caller, lineage: Lineage, payload: SaveRequest, retry: uuid.UUID | None = None
) -> SavedItem:
    """Save a new item with its ACL and resources in one atomic batch.

    With an `id` in the payload, saving the same again returns the first save. `status` is what it begins with: a memory
    that a project is to share waits for a coordinator. One that is in force supersedes the item that it names.

    Raises UnknownKnowledge (that item), InvalidPayload, IllegalScope, NotOwner, Forbidden, KnowledgeExists,
    PayloadTooLarge, IllegalSubject, BrokerUnavailable, ViewBehind, and what resources/together.py:together raises.
    """
    fact, shared = saved_fact(payload, caller), first_acl(payload, caller)
    try:
        status = await first_status(desk, fact, shared)
        if fact.supersedes is not None:
            await check_superseding(desk, caller, fact.supersedes, status)
    except (NotOwner, UnknownKnowledge):  # as it is now: an earlier request with the key may have been in time
        if not await _is_saved(desk, caller, payload, fact, shared, retry):
            raise
        status = "proposed"
    saved = await _saved(desk, caller, lineage, payload, fact, shared, retry)
    asks = waits_for_a_project(fact, shared)
    if asks and not saved["duplicate"]:
        first = saved["position"] - saved["version"] + 1
        await refuse_refused(desk, range(first, saved["position"] + 1))
    if asks or saved["duplicate"]:
        standing = await desk.view.ask(ask.standing, desk.org, caller, saved["id"])
        status = status if standing is None else standing.status
    if payload.resources:
        with contextlib.suppress(ViewBehind):  # the warnings need the view; the save is appended in any case
            await desk.view.wait_for(saved["position"])
    by_item = await warnings(desk, caller, {0: referring(fact, shared)})
    saved["warnings"] = by_item.get(0, [])
    if fact.supersedes is not None and status == "active":
        position = await supersede_now(desk, caller, lineage, saved["id"], saved["event_id"])
        saved["position"] = max(saved["position"], position)
    return SavedItem(**saved, status=status)


def referring(fact: KnowledgeSaved, shared: KnowledgeShared | None) -> Referring:
    """The resources that a saved item refers to, and the item's readers."""
    return Referring(fact.resource_ids, readers(fact.scopes, shared.readers() if shared else (), fact.owner))


async def _saved(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    payload: SaveRequest,
    fact: KnowledgeSaved,
    shared: KnowledgeShared | None,
    retry: uuid.UUID | None,
) -> Saved:
    refuse_cases(payload)
    await require_types(desk, named_entities(fact, shared))
    lineage = lineage_of(lineage, payload)
    named = payload.id
    stated = named is not None and retry is None
    if retry is not None:
        own_id = event_id(retry)
        if (before := await _earlier_save(retry, desk, caller, payload, fact, shared)) is not None:
            return before
    elif named is not None:
        own_id = statement_id(desk.org, named, statement(fact, shared))
    else:
        own_id = event_id(None)
    expects, now = 0, utc_now()
    for attempt in range(ATTEMPTS):
        # An id derived from the key can be guessed, and taken first; the next attempt uses a random one.
        item_id = named or fresh_id(None if retry is None or attempt else uuid.uuid5(retry, "0"))
        signed_fact = signed(fact, caller, now)
        event = NewEvent(signed_fact, item_id, fact.owner, desk.org, lineage, id=own_id, expects=expects, time=now)
        batch = [event, *shared_with_it(event, shared)]
        resource_events = await together(desk, caller, lineage, payload.resources, fact, retry)
        # A statement was checked as it was written; an agent's save has its source filled in since.
        append = publish_judged if stated and signed_fact is fact else publish
        try:
            appended = (await append(desk.ledger, desk.tally, [*resource_events, *batch]))[len(resource_events) :]
        except VersionConflict:
            before, expects = await _after_conflict(desk, event, fact, shared, expects, bool(named))
            if before is not None and retry is not None and before["event_id"] == own_id:
                return await _earlier_save(retry, desk, caller, payload, fact, shared) or before
            if before is not None:
                await keep_alone(desk, caller, lineage, payload.resources, fact, retry)
                return before
            continue
        if appended[0].duplicate and retry is not None:
            await desk.view.wait_for(appended[0].position)
            if (before := await _earlier_save(retry, desk, caller, payload, fact, shared)) is not None:
                return before
        return as_saved(item_id, appended[-1].position, len(batch), own_id, appended[0].duplicate)
    raise VersionConflict(f"others keep writing to {named or 'the new item'!r}: try again")


async def _earlier_save(
    retry: uuid.UUID,
    desk: Desk,
    caller: Caller,
    payload: SaveRequest,
    fact: KnowledgeSaved,
    shared: KnowledgeShared | None,
) -> Saved | None:
    """The save of an earlier request with this key. Raises IdempotencyMismatch where that request differed."""
    own_id = event_id(retry)
    if (before := await _appended_save(desk, possible_actors(caller, fact.owner), own_id)) is None:
        return None
    item_id = before["id"]
    two_events = before["version"] > 1  # the second one shares it
    if payload.id not in (None if _FRESH.fullmatch(item_id) else item_id, item_id) or two_events != (
        shared is not None
    ):
        raise mismatch()
    fields = fact.model_dump(mode="json", include=_FIRST)
    await earlier_event(desk, possible_actors(caller, fact.owner), own_id, {name: fields.get(name) for name in _FIRST})
    await refuse_other_save(desk, item_id, own_id, fact, shared)
    await refuse_others(desk, caller, payload.resources, fact, retry, before["position"])
    return before


async def _is_saved(
    desk: Desk,
    caller: Caller,
    payload: SaveRequest,
    fact: KnowledgeSaved,
    shared: KnowledgeShared | None,
    retry: uuid.UUID | None,
) -> bool:
    """Whether the same was saved before, under its key or, without one, under its id."""
    if retry is not None:
        return await _earlier_save(retry, desk, caller, payload, fact, shared) is not None
    if payload.id is None:
        return False
    own_id = statement_id(desk.org, payload.id, statement(fact, shared))
    return await _appended_save(desk, possible_actors(caller, fact.owner), own_id) is not None


async def _appended_save(desk: Desk, actors: Collection[str], own_id: str) -> Saved | None:
    by_id = await desk.view.ask(events.kept_events, desk.org, actors, [own_id, share_id(own_id)])
    if own_id not in by_id:
        return None
    return as_saved(by_id[own_id].entity_id, max(each.position for each in by_id.values()), len(by_id), own_id, True)


async def _after_conflict(
    desk: Desk, event: NewEvent, fact: KnowledgeSaved, shared: KnowledgeShared | None, expects: int, named: bool
) -> tuple[Saved | None, int]:
    """What to do after a version conflict: the save that is in the log already, or the position to expect next.

    Raises KnowledgeExists when the id belongs to an item with another statement.
    """
    await reach_head(desk)
    if (before := await _appended_save(desk, [event.actor], event.id)) is not None:
        return before, expects
    if not named:
        return None, 0
    taken = (await desk.view.ask(ask.saved_statements, desk.org, [event.entity_id])).get(event.entity_id)
    if taken is not None:
        if not same_statement(fact, shared, taken):
            raise exists(event.entity_id)
        more = shared is not None
        return as_saved(event.entity_id, taken.last, 1 + more, taken.event_id, True), expects
    # A history without an item holds only events that the gate refused: the id is still free.
    return None, await desk.ledger.last_position_of(desk.org, "knowledge", event.entity_id)


def exists(item_id: str) -> KnowledgeExists:
    """The error for an id that belongs to an item with another statement."""
    return KnowledgeExists(
        f"knowledge {item_id!r} is there already and says something else: revise it with PUT, or choose another id",
        id=item_id,
    )


def statement_id(org: str, item_id: str, statement: bytes) -> str:
    """The event id of a save whose item id the caller chose: the same save is the same event."""
    return named_id(NAMESPACE, f"{org}\n{item_id}\n{statement.decode()}")


def fresh_id(seed: uuid.UUID | None = None) -> str:
    """`knowledge-{yyyymmdd}-{8 letters and digits}`; derived from `seed` where there is one, else random."""
    raw = secrets.token_bytes(5) if seed is None else seed.bytes[:5]
    return f"knowledge-{utc_now():%Y%m%d}-{base64.b32encode(raw).decode().lower()}"


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
) -> Moved:
    """Retire an item: no search returns it. Raises UnknownKnowledge, NotOwner, IllegalState, BrokerUnavailable."""
    fact = KnowledgeRetired(reason=reason)
    return await publish_change(desk, caller, lineage, item_id, fact, retry=retry, as_coordinator=True)


async def restore(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    item_id: str,
    reason: str | None = None,
    retry: uuid.UUID | None = None,
) -> Moved:
    """Restore an item that is retired, expired or superseded.

    Raises UnknownKnowledge, NotOwner, IllegalState, BrokerUnavailable.
    """
    fact = KnowledgeRestored(reason=reason)
    try:
        return await publish_change(desk, caller, lineage, item_id, fact, retry=retry, as_coordinator=True)
    except IllegalState:
        if await is_over(desk, item_id):  # the log still has it active
            raise over(item_id) from None
        raise


async def is_over(desk: Desk, item_id: str) -> bool:
    """Whether an active item is a short memory that is out of recall, which the node has not stated yet."""
    return bool(await are_over(desk, [item_id]))


async def are_over(desk: Desk, ids: Sequence[str]) -> set[str]:
    """Those of these items that are active short memories and out of recall, which the node has not stated yet."""
    if not await desk.view.ask(over_among, desk.org, ids, utc_now()):
        return set()
    await reach_recalls(desk, ANY)  # one that is not folded may have renewed its life
    return await desk.view.ask(over_among, desk.org, ids, utc_now())


def over(item_id: str) -> IllegalState:
    """The error for a memory that is over, which the node is about to state."""
    fault = f"{item_id} is over, and within seconds the node states so: restore it then, and change it"
    return IllegalState(fault, id=item_id, status="expired")


async def refuse_over(desk: Desk, item: ask.Standing) -> None:
    """Raise IllegalState for a memory that is over, which the node has not stated yet: as it is active by the log, a
    change would begin its life anew."""
    if item.status == "active" and await is_over(desk, item.id):
        raise over(item.id)


def refuse_status(fact: Fact, item: ask.Standing) -> None:
    """Raise IllegalState where the item's status does not allow the event."""
    if (fault := fault_of_status(fact.name, item.id, item.status)) is not None:
        raise IllegalState(fault, id=item.id, status=item.status)


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

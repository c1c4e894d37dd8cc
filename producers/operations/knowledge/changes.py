"""How does the knowledge of the ledger change? One item saved, revised, retired, restored (mission K1, K10).

What the owner alone may do is stated by the owner: the caller acts as that entity. Before it is appended it
is judged on a view that has the item's whole history, so that a door does not say yes where the fold says no.
"""

from __future__ import annotations

import base64
import contextlib
import re
import secrets
import uuid
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import Literal

from kledger.contract.errors import (
    IllegalState,
    KnowledgeExists,
    NotOwner,
    UnknownKnowledge,
    VersionConflict,
    ViewBehind,
)
from kledger.contract.scopes import Caller
from ledger.event import Fact, JsonObject, Lineage, NewEvent, utc_now
from ledger.events.knowledge import KnowledgeRestored, KnowledgeRetired, KnowledgeSaved, KnowledgeShared
from ledger.readers import readers
from producers.operations.admin.scope_types import require_types
from producers.operations.desk import Desk, reach_head
from producers.operations.knowledge.acl import first_acl, named_entities, share_id, shared_with_it, statement
from producers.operations.knowledge.first_cases import refuse_cases
from producers.operations.knowledge.stating import lineage_of, not_owner, saved_fact, signed
from producers.operations.knowledge.unreadable import Referring, warnings
from producers.operations.publish import NAMESPACE, event_id, mismatch, publish
from producers.operations.resources.together import keep_alone, refuse_others, together
from producers.operations.stated_before import asked, may_have_stated, may_state, refuse_another, same, stated
from producers.requests.knowledge import SaveRequest
from projections.views.knowledge import ask
from projections.views.lineage import ask as events
from projections.views.lineage.ask import StatedEvent

ATTEMPTS = 6
"""How often a change is tried again when others write to the same item meanwhile."""
_FRESH = re.compile(r"knowledge-\d{8}-[a-z2-7]{8}")
"""What `fresh_id` makes."""
_FIRST = {"helpful", "harmful", "confidence", "origin"}
"""What a save says beside the statement of the item (`ask.statement_of`)."""


@dataclass(frozen=True, slots=True)
class Saved:
    """Where a new item is. `duplicate`: the same save was kept before, and nothing was appended.

    `warnings` say what is kept and will not work as it is: see producers/operations/knowledge/unreadable.py.
    """

    id: str
    position: int
    version: int
    event_id: str
    duplicate: bool
    warnings: list[JsonObject] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Changed:
    """Where a change of one item is kept."""

    id: str
    position: int
    event_id: str


def unknown(item_id: str) -> UnknownKnowledge:
    """No such item, or none for this caller: the words are the same."""
    return UnknownKnowledge(
        f"there is no knowledge {item_id[:200]!r} that you may see: check the id and your identity headers",
        id=item_id,
    )


async def save(
    desk: Desk, caller: Caller, lineage: Lineage, payload: SaveRequest, retry: uuid.UUID | None = None
) -> Saved:
    """Keep a new item, its ACL, and the resources that come with it, all of it or nothing.

    With an `id` of the caller's, saving the same again answers the first save. Raises InvalidPayload, IllegalScope,
    NotOwner, Forbidden, KnowledgeExists, PayloadTooLarge, IllegalSubject, BrokerUnavailable, ViewBehind, and what
    resources_together.py:together does.
    """
    fact, shared = saved_fact(payload, caller), first_acl(payload, caller)
    saved = await _saved(desk, caller, lineage, payload, fact, shared, retry)
    if payload.resources:
        with contextlib.suppress(ViewBehind):  # who reads them is asked of the view; all is kept in any case
            await desk.view.wait_for(saved.position)
    found = await warnings(desk, caller, {0: referring(fact, shared)})
    return replace(saved, warnings=found[0]) if found else saved


def referring(fact: KnowledgeSaved, shared: KnowledgeShared | None) -> Referring:
    """What an item refers to as it is saved, and who reads it."""
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
    if retry is not None:
        own_id = event_id(retry)
        if (before := await _kept_by(retry, desk, caller, payload, fact, shared)) is not None:
            return before
    elif named is not None:
        own_id = statement_id(desk.org, named, statement(fact, shared))
    else:
        own_id = event_id(None)
    expects, now = 0, utc_now()
    for attempt in range(ATTEMPTS):
        # One that follows from the key can be guessed, and taken first; then it is one that cannot.
        item_id = named or fresh_id(None if retry is None or attempt else uuid.uuid5(retry, "0"))
        kept_fact = signed(fact, caller, now)
        event = NewEvent(kept_fact, item_id, fact.owner, desk.org, lineage, id=own_id, expects=expects, time=now)
        batch = [event, *shared_with_it(event, shared)]
        brought = await together(desk, caller, lineage, payload.resources, fact, retry)
        try:
            kept = (await publish(desk.ledger, desk.tally, [*brought, *batch]))[len(brought) :]
        except VersionConflict:
            before, expects = await _taken(desk, event, fact, shared, expects, bool(named))
            if before is not None and retry is not None and before.event_id == own_id:
                return await _kept_by(retry, desk, caller, payload, fact, shared) or before
            if before is not None:
                await keep_alone(desk, caller, lineage, payload.resources, fact, retry)
                return before
            continue
        if kept[0].duplicate and retry is not None:
            await desk.view.wait_for(kept[0].position)
            if (before := await _kept_by(retry, desk, caller, payload, fact, shared)) is not None:
                return before
        return Saved(item_id, kept[-1].position, len(batch), own_id, kept[0].duplicate)
    raise VersionConflict(f"others keep writing to {named or 'the new item'!r}: try again")


async def _kept_by(
    retry: uuid.UUID,
    desk: Desk,
    caller: Caller,
    payload: SaveRequest,
    fact: KnowledgeSaved,
    shared: KnowledgeShared | None,
) -> Saved | None:
    """What an earlier try with this key saved. Raises IdempotencyMismatch where that was anything else than this."""
    own_id = event_id(retry)
    if (before := await _kept(desk, may_state(caller, fact.owner), own_id)) is None:
        return None
    named = None if _FRESH.fullmatch(before.id) else before.id
    if payload.id not in (named, before.id) or (before.version > 1) != (shared is not None):  # two events where shared
        raise mismatch()
    said = fact.model_dump(mode="json", include=_FIRST)
    await stated(desk, may_state(caller, fact.owner), own_id, {name: said.get(name) for name in _FIRST})
    await refuse_another(desk, before.id, own_id, fact, shared)
    await refuse_others(desk, caller, payload.resources, fact, retry, before.position)
    return before


async def _kept(desk: Desk, actors: Collection[str], own_id: str) -> Saved | None:
    kept = await desk.view.ask(events.kept_events, desk.org, actors, [own_id, share_id(own_id)])
    if own_id not in kept:
        return None
    return Saved(kept[own_id].entity_id, max(each.position for each in kept.values()), len(kept), own_id, True)


async def _taken(
    desk: Desk, event: NewEvent, stated: KnowledgeSaved, shared: KnowledgeShared | None, expects: int, named: bool
) -> tuple[Saved | None, int]:
    """What to do about an id with a history: the save that was kept before, or the position to expect now.

    Raises KnowledgeExists when an item with another statement is there.
    """
    await reach_head(desk)
    if (before := await _kept(desk, [event.actor], event.id)) is not None:
        return before, expects
    if not named:
        return None, 0
    taken = (await desk.view.ask(ask.saved_statements, desk.org, [event.entity_id])).get(event.entity_id)
    if taken is not None:
        if not same(stated, shared, taken):
            raise exists(event.entity_id)
        more = shared is not None
        return Saved(event.entity_id, taken.position + more, 1 + more, taken.event_id, True), expects
    # A history without an item: events that the gate refused. The id is still free.
    return None, await desk.ledger.last_position_of(desk.org, "knowledge", event.entity_id)


def exists(item_id: str) -> KnowledgeExists:
    """The id is taken by an item that says something else."""
    return KnowledgeExists(
        f"knowledge {item_id!r} is there already and says something else: revise it with PUT, or choose another id",
        id=item_id,
    )


def statement_id(org: str, item_id: str, statement: bytes) -> str:
    """The event id of a save whose id the caller brought: the same save is the same event."""
    return str(uuid.uuid5(NAMESPACE, f"{org}\n{item_id}\n{statement.decode()}"))


def fresh_id(seed: uuid.UUID | None = None) -> str:
    """`knowledge-{yyyymmdd}-{8 letters and digits}`; of a request's key when it has one, else random."""
    raw = secrets.token_bytes(5) if seed is None else seed.bytes[:5]
    return f"knowledge-{utc_now():%Y%m%d}-{base64.b32encode(raw).decode().lower()}"


async def latest(desk: Desk, caller: Caller, item_id: str) -> tuple[ask.Standing, int]:
    """An item as its whole history left it, and the last position of that. Raises UnknownKnowledge, ViewBehind."""
    last = await desk.ledger.last_position_of(desk.org, "knowledge", item_id)
    if desk.view.position < last:
        await desk.view.wait_for(last)
    item = (await desk.view.ask(ask.standings, desk.org, caller, [item_id])).get(item_id)
    if item is None:
        raise unknown(item_id)
    return item, last


async def owned(desk: Desk, caller: Caller, item_id: str) -> tuple[ask.Standing, int]:
    """An item that the caller is about to change as its owner, and the last position of its history.

    Raises UnknownKnowledge, NotOwner, ViewBehind.
    """
    item, last = await latest(desk, caller, item_id)
    if not caller.may_act_for(item.owner):
        raise not_owner(f"change {item_id}, which {item.owner} owns", item.owner, caller)
    return item, last


async def retire(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    item_id: str,
    reason: str | None = None,
    retry: uuid.UUID | None = None,
) -> Changed:
    """Take an item out of recall. Raises UnknownKnowledge, NotOwner, IllegalState, BrokerUnavailable."""
    return await _turn(desk, caller, lineage, item_id, "retired", reason, retry)


async def restore(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    item_id: str,
    reason: str | None = None,
    retry: uuid.UUID | None = None,
) -> Changed:
    """Bring a retired item back. Raises UnknownKnowledge, NotOwner, IllegalState, BrokerUnavailable."""
    return await _turn(desk, caller, lineage, item_id, "active", reason, retry)


async def _turn(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    item_id: str,
    status: Literal["active", "retired"],
    reason: str | None,
    retry: uuid.UUID | None,
) -> Changed:
    fact = KnowledgeRetired(reason=reason) if status == "retired" else KnowledgeRestored(reason=reason)

    def may(item: ask.Standing) -> None:
        if item.status == status:
            raise IllegalState(
                f"{item_id} is {status} already: "
                + ("restore it first" if status == "retired" else "there is nothing to restore"),
                id=item_id,
                status=status,
            )

    return await state_as_owner(desk, caller, lineage, item_id, fact, may, retry)


async def owned_or_stated(
    desk: Desk, caller: Caller, item_id: str, own_id: str, said: JsonObject, retry: uuid.UUID | None
) -> StatedEvent | tuple[ask.Standing, int]:
    """What an earlier try with the key stated of an item, whoever owns it by now; else the item as `owned` has it."""

    async def before() -> StatedEvent | None:
        return None if retry is None else await stated(desk, await may_have_stated(desk, caller, item_id), own_id, said)

    try:
        found = await owned(desk, caller, item_id)
    except (NotOwner, UnknownKnowledge):
        if (kept := await before()) is None:
            raise
        return kept
    return await before() or found  # asked after the item: what its state shows, this sees too


async def state_as_owner(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    item_id: str,
    fact: Fact,
    may: Callable[[ask.Standing], None],
    retry: uuid.UUID | None,
) -> Changed:
    """Keep what the owner states of an item, on the item as it is now; `may` raises when it may not happen to it.

    Raises UnknownKnowledge, NotOwner, VersionConflict, BrokerUnavailable, ViewBehind.
    """
    own_id = event_id(retry)
    for _ in range(ATTEMPTS):
        found = await owned_or_stated(desk, caller, item_id, own_id, asked(fact), retry)
        if isinstance(found, StatedEvent):
            return Changed(item_id, found.position, own_id)
        item, last = found
        may(item)
        event = NewEvent(fact, item_id, item.owner, desk.org, lineage, id=own_id, expects=last)
        try:
            (done,) = await publish(desk.ledger, desk.tally, [event])
        except VersionConflict:
            continue
        return Changed(item_id, done.position, own_id)
    raise VersionConflict(f"others keep writing to {item_id}: try again", id=item_id)

"""Save of one new item with its ACL and resources, once for each key, or for each statement under an id."""

from __future__ import annotations

import base64
import contextlib
import re
import secrets
import uuid
from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

from kledger.answers.knowledge import SavedItem
from kledger.answers.parts import Saved
from kledger.contract.errors import (
    KnowledgeExists,
    NotOwner,
    UnknownKnowledge,
    VersionConflict,
    ViewBehind,
)
from kledger.contract.knowledge import Source
from kledger.contract.scopes import Caller
from kledger.requests.knowledge import SaveRequest
from ledger.event import Lineage, NewEvent, utc_now
from ledger.events.knowledge import KnowledgeSaved, KnowledgeShared
from ledger.named_ids import named_id
from ledger.readers import readers
from producers.operations.admin.scope_types import require_types
from producers.operations.desk import Desk, reach_head
from producers.operations.first_cases import refuse_cases
from producers.operations.judged import refuse_refused
from producers.operations.knowledge.acl import first_acl, named_entities, share_id, shared_with_it, statement
from producers.operations.knowledge.proposing import first_status, waits_for_a_project
from producers.operations.knowledge.superseding import check_superseding, supersede_now
from producers.operations.knowledge.unreadable import Referring, warnings
from producers.operations.outcomes import ATTEMPTS, as_saved
from producers.operations.publish import NAMESPACE, event_id, mismatch, publish, publish_judged
from producers.operations.resources.together import keep_alone, refuse_others, together
from producers.operations.stated_before import (
    earlier_event,
    possible_actors,
    refuse_other_save,
    same_statement,
)
from producers.operations.stating import lineage_of, saved_fact, signed_source, stated_source
from projections.views.knowledge import ask
from projections.views.lineage import ask as events

_FRESH = re.compile(r"knowledge-\d{8}-[a-z2-7]{8}")
"""The form of the ids that `fresh_id` returns."""
_FIRST = {"helpful", "harmful", "confidence", "origin"}
"""Fields of a save that are not part of the item's statement (`ask.statement_of`)."""


class _Asked(NamedTuple):
    """A save as it is asked for: its payload, the facts that this states, the key of the request, and its time.

    The fact is as it is appended, with its source signed; `source` is as the payload states it.
    """

    payload: SaveRequest
    fact: KnowledgeSaved
    shared: KnowledgeShared | None
    retry: uuid.UUID | None
    moment: datetime
    source: Source

    def stated(self) -> KnowledgeSaved:
        """The fact as the payload states it."""
        return self.fact.model_copy(update={"source": self.source})

    def statement(self) -> bytes:
        """Canonical bytes of what is stated. Raises InvalidPayload."""
        return statement(self.fact, self.shared, self.source)


async def save(
    desk: Desk, caller: Caller, lineage: Lineage, payload: SaveRequest, retry: uuid.UUID | None = None
) -> SavedItem:
    """Save a new item with its ACL and resources in one atomic batch.

    With an `id` in the payload, saving the same again returns the first save. `status` is what it begins with: a memory
    that a project is to share waits for a coordinator. One that is in force supersedes the item that it names.

    Raises UnknownKnowledge (that item), InvalidPayload, IllegalScope, NotOwner, Forbidden, KnowledgeExists,
    PayloadTooLarge, IllegalSubject, BrokerUnavailable, ViewBehind, and what resources/together.py:together raises.
    """
    source, moment = stated_source(payload), utc_now()
    fact = saved_fact(payload, caller, signed_source(source, caller, moment))
    asked = _Asked(payload, fact, shared := first_acl(payload, caller), retry, moment, source)
    try:
        status = await first_status(desk, fact, shared)
        if fact.supersedes is not None:
            await check_superseding(desk, caller, fact.supersedes, status)
    except (NotOwner, UnknownKnowledge):  # as it is now: an earlier request with the key may have been in time
        if not await _is_saved(desk, caller, asked):
            raise
        status = "proposed"
    saved = await _saved(desk, caller, lineage, asked)
    waits = waits_for_a_project(fact, shared)
    if waits and not saved["duplicate"]:
        first = saved["position"] - saved["version"] + 1
        await refuse_refused(desk, range(first, saved["position"] + 1))
    if waits or saved["duplicate"]:
        standing = await desk.view.ask(ask.standing, desk.org, caller, saved["id"])
        status = status if standing is None else standing.status
    if payload.resources:
        with contextlib.suppress(ViewBehind):  # the warnings need the view; the save is appended in any case
            await desk.view.wait_for(saved["position"])
    if fact.resource_ids:
        saved["warnings"] = (await warnings(desk, caller, {0: referring(fact, shared)})).get(0, [])
    if fact.supersedes is not None and status == "active":
        position = await supersede_now(desk, caller, lineage, saved["id"], saved["event_id"])
        saved["position"] = max(saved["position"], position)
    return SavedItem(**saved, status=status)


def referring(fact: KnowledgeSaved, shared: KnowledgeShared | None) -> Referring:
    """The resources that a saved item refers to, and the item's readers."""
    return Referring(fact.resource_ids, readers(fact.scopes, shared.readers() if shared else (), fact.owner))


async def _saved(desk: Desk, caller: Caller, lineage: Lineage, asked: _Asked) -> Saved:
    payload, fact, shared, retry, now, source = asked
    refuse_cases(payload)
    await require_types(desk, named_entities(fact, shared))
    lineage = lineage_of(lineage, payload)
    if retry is not None and (before := await _earlier_save(desk, caller, asked, retry)) is not None:
        return before
    named = payload.id
    stated = named is not None and retry is None
    own_id = statement_id(desk.org, named, asked.statement()) if named and stated else event_id(retry)
    # A statement was checked as it was written, but for the agent's name where that was filled in.
    append = publish_judged if stated and source.agent_id == fact.source.agent_id else publish
    expects = 0
    for attempt in range(ATTEMPTS):
        # An id derived from the key can be guessed, and taken first; the next attempt uses a random one.
        item_id = named or fresh_id(None if retry is None or attempt else uuid.uuid5(retry, "0"))
        event = NewEvent(fact, item_id, fact.owner, desk.org, lineage, id=own_id, expects=expects, time=now)
        batch = [event, *shared_with_it(event, shared)]
        resource_events = await together(desk, caller, lineage, payload.resources, fact, retry)
        try:
            appended = (await append(desk.ledger, desk.tally, [*resource_events, *batch]))[len(resource_events) :]
        except VersionConflict:
            before, expects = await _after_conflict(desk, event, asked, expects)
            if before is None:
                continue
            if retry is not None and before["event_id"] == own_id:
                return await _earlier_save(desk, caller, asked, retry) or before
            await keep_alone(desk, caller, lineage, payload.resources, fact, retry)
            return before
        if appended[0].duplicate and retry is not None:
            await desk.view.wait_for(appended[0].position)
            if (before := await _earlier_save(desk, caller, asked, retry)) is not None:
                return before
        return as_saved(item_id, appended[-1].position, len(batch), own_id, appended[0].duplicate)
    raise VersionConflict(f"others keep writing to {named or 'the new item'!r}: try again")


async def _earlier_save(desk: Desk, caller: Caller, asked: _Asked, retry: uuid.UUID) -> Saved | None:
    """The save of an earlier request with this key. Raises IdempotencyMismatch where that request differed."""
    payload, fact, shared = asked.payload, asked.fact, asked.shared
    actors, own_id = possible_actors(caller, fact.owner), event_id(retry)
    if (before := await _appended_save(desk, actors, own_id)) is None:
        return None
    item_id = before["id"]
    had_an_acl = before["version"] > 1  # the second event shares the item
    had_no_id = _FRESH.fullmatch(item_id) is not None
    same_id = payload.id == item_id or (payload.id is None and had_no_id)
    if not same_id or had_an_acl != (shared is not None):
        raise mismatch()
    fields = fact.model_dump(mode="json", include=_FIRST)
    await earlier_event(desk, actors, own_id, {name: fields.get(name) for name in _FIRST})
    await refuse_other_save(desk, item_id, own_id, asked.stated(), shared)
    await refuse_others(desk, caller, payload.resources, fact, retry, before["position"])
    return before


async def _is_saved(desk: Desk, caller: Caller, asked: _Asked) -> bool:
    """Whether the same was saved before, under its key or, without one, under its id."""
    if asked.retry is not None:
        return await _earlier_save(desk, caller, asked, asked.retry) is not None
    if asked.payload.id is None:
        return False
    own_id = statement_id(desk.org, asked.payload.id, asked.statement())
    return await _appended_save(desk, possible_actors(caller, asked.fact.owner), own_id) is not None


async def _appended_save(desk: Desk, actors: Collection[str], own_id: str) -> Saved | None:
    """The save that has this event id, where the log has it."""
    by_id = await desk.view.ask(events.kept_events, desk.org, actors, [own_id, share_id(own_id)])
    if own_id not in by_id:
        return None
    return as_saved(by_id[own_id].entity_id, max(each.position for each in by_id.values()), len(by_id), own_id, True)


async def _after_conflict(desk: Desk, event: NewEvent, asked: _Asked, expects: int) -> tuple[Saved | None, int]:
    """What to do after a version conflict: the save that is in the log already, or the position to expect next.

    Raises KnowledgeExists when the id belongs to an item with another statement.
    """
    await reach_head(desk)
    if (before := await _appended_save(desk, [event.actor], event.id)) is not None:
        return before, expects
    if asked.payload.id is None:
        return None, 0
    taken = (await desk.view.ask(ask.saved_statements, desk.org, [event.entity_id])).get(event.entity_id)
    if taken is not None:
        if not same_statement(asked.stated(), asked.shared, taken):
            raise exists(event.entity_id)
        version = 1 if asked.shared is None else 2
        return as_saved(event.entity_id, taken.last, version, taken.event_id, True), expects
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
    return named_id(NAMESPACE, f"{org}\n{item_id}\n".encode() + statement)


def fresh_id(seed: uuid.UUID | None = None) -> str:
    """`knowledge-{yyyymmdd}-{8 letters and digits}`; derived from `seed` where there is one, else random."""
    raw = secrets.token_bytes(5) if seed is None else seed.bytes[:5]
    return f"knowledge-{utc_now():%Y%m%d}-{base64.b32encode(raw).decode().lower()}"

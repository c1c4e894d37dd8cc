"""Idempotency by Idempotency-Key: finds what an earlier request with the same key appended, and compares it.

The ids of a request's events are derived from its key, so the log itself answers a retry, on any node, at any time. An
event that is there with other content means that the key was reused by mistake. What an event does not hold of a
request (how many results a focus asks for) is compared by producers/http/repeated.py alone, for as long as its memory
lasts.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection
from typing import Any

import orjson

from kledger.contract.errors import VersionConflict
from kledger.contract.knowledge import Source
from kledger.contract.scopes import Caller
from ledger.event import Fact, JsonObject, NewEvent
from ledger.events.evolution import EvolutionRequested
from ledger.events.goal import GoalFocused
from ledger.events.knowledge import (
    KnowledgeConfirmed,
    KnowledgeRated,
    KnowledgeRestored,
    KnowledgeRetired,
    KnowledgeRevised,
    KnowledgeSaved,
    KnowledgeScored,
    KnowledgeShared,
)
from ledger.events.resource import ResourceSaved
from ledger.events.slim import SlimRequested
from producers.operations.desk import Desk, reach_head
from producers.operations.publish import NAMESPACE, mismatch, publish
from producers.operations.stating import FILLED_IN
from producers.requests.first_sentence import first_sentence
from projections.views.knowledge import ask
from projections.views.lineage import ask as events
from projections.views.lineage.ask import StatedEvent

ATTEMPTS = 3
_NOT_REQUESTED: dict[type[Fact], frozenset[str]] = {
    KnowledgeRated: frozenset({"through"}),
    KnowledgeScored: frozenset({"through"}),
    KnowledgeConfirmed: frozenset({"through"}),
    **dict.fromkeys((KnowledgeRetired, KnowledgeRestored, KnowledgeShared), frozenset({"bulk"})),
    EvolutionRequested: frozenset({"base_version"}),
    GoalFocused: frozenset({"items", "recall"}),
    ResourceSaved: frozenset({"secure_body"}),
    SlimRequested: frozenset({"model"}),
}
"""Fields of an event that come from the state of the node and the item, not from the request."""


def request_fields(fact: Fact) -> JsonObject:
    """The fields of a fact that come from the request."""
    return fact.model_dump(mode="json", exclude=set(_NOT_REQUESTED.get(type(fact), ())))


def matches(fields: JsonObject, event: StatedEvent) -> bool:
    """Whether an event has these field values; erased fields match anything."""
    return all(
        event.erases(name) or _equal_json(value, event.data.get(name)) or (value is None and _follows(name, event))
        for name, value in fields.items()
    )


def _follows(name: str, event: StatedEvent) -> bool:
    """Whether a field of a revision follows from its content (knowledge/task_of_content.py); no request stated it."""
    content = event.data.get("content")
    if name != "task" or event.type != KnowledgeRevised.name or not isinstance(content, str):
        return False
    return bool(event.data.get(name) == first_sentence(content))


def refuse_mismatch(fact: Fact, entity_id: str, event: StatedEvent) -> None:
    """Raise IdempotencyMismatch where the event under a key's id differs from this fact."""
    if (fact.name, entity_id) != (event.type, event.entity_id) or not matches(request_fields(fact), event):
        raise mismatch()


def possible_actors(caller: Caller, owner: str) -> set[str]:
    """The possible actors of events under a key of this caller: the owner named now, or another entity of the caller.

    The operator acts for anybody; only the owner that it names now is searched.
    """
    return {owner, *caller.reading_as()}


async def past_actors(desk: Desk, caller: Caller, item_id: str) -> set[str]:
    """The possible actors of events of an item under a key of this caller, whoever owns the item now.

    The operator acts as the owner of the time, so all former owners are included.
    """
    owners = await desk.view.ask(ask.owners, desk.org, item_id) if caller.is_operator else []
    return {*caller.reading_as(), *owners}


async def events_of_key(
    desk: Desk, actors: Collection[str], ids: Collection[str] = (), beginning: str | None = None
) -> dict[str, StatedEvent]:
    """The events that a key has produced, by id: those of `ids`, or whose ids start with `beginning`.

    An operation that appends several events per request has to pass ALL ids that the key can produce, not only those
    of the current request: the earlier request may have had more parts (`refuse_extra`), or others in their place.
    """
    if not ids and beginning is None:
        return {}
    return await desk.view.ask(events.stated_events, desk.org, actors, list(ids), beginning)


def refuse_extra(found: Collection[str], expected: Collection[str]) -> None:
    """Raise IdempotencyMismatch where a key has produced an event that the current request does not have."""
    if not set(found) <= set(expected):
        raise mismatch()


async def earlier_event(desk: Desk, actors: Collection[str], own_id: str, fields: JsonObject) -> StatedEvent | None:
    """The event that one of these actors appended under this id, None when there is none.

    Raises IdempotencyMismatch when its values differ from `fields`.
    """
    before = (await desk.view.ask(events.stated_events, desk.org, actors, [own_id])).get(own_id)
    if before is not None and not matches(fields, before):
        raise mismatch()
    return before


async def begun(
    desk: Desk, caller: Caller, kind: str, own_id: str, event: Callable[[str], NewEvent], retry: uuid.UUID | None
) -> str:
    """Begin a process with the event made for its id, and return that id; a retry gets the id of the first request.

    Ids derived from a key can be guessed, and taken by anybody who may publish; then the process gets a random one.
    Raises IdempotencyMismatch, VersionConflict, and what publishing raises.
    """
    name = f"{kind}-{uuid.uuid5(NAMESPACE, own_id).hex[:16]}"
    for _ in range(ATTEMPTS):
        if retry is not None and (before := await _begun_before(desk, caller, own_id, event, name)) is not None:
            return before
        try:
            (appended,) = await publish(desk.ledger, desk.tally, [event(name)])
        except VersionConflict:
            await reach_head(desk)
            name = random_id(kind)
            continue
        if appended.duplicate and retry is not None:
            await desk.view.wait_for(appended.position)
            return await _begun_before(desk, caller, own_id, event, name) or name
        return name
    raise VersionConflict(f"others keep taking the ids of every new {kind}: try again")


def random_id(kind: str) -> str:
    """A process id that cannot be guessed."""
    return f"{kind}-{uuid.uuid4().hex[:16]}"


async def _begun_before(
    desk: Desk, caller: Caller, own_id: str, event: Callable[[str], NewEvent], name: str
) -> str | None:
    before = (await events_of_key(desk, possible_actors(caller, event(name).actor), [own_id])).get(own_id)
    if before is None:
        return None
    if not matches(request_fields(event(before.entity_id).fact), before):
        raise mismatch()
    return before.entity_id


def _equal_json(value: Any, other: Any) -> bool:
    return bool(orjson.loads(orjson.dumps(value)) == other)


def same_statement(fact: KnowledgeSaved, shared: KnowledgeShared | None, taken: ask.SavedStatement) -> bool:
    """Whether a save equals the first save of the item, and its ACL, where it has one, the ACL of that save.

    `fact` is the fact before defaults are filled in: those fields are not compared. An erased statement equals none.
    """
    filled_in = {name: None for name in FILLED_IN if getattr(fact.source, name) is None}
    first = taken.statement
    if filled_in:
        first = tuple(each.model_copy(update=filled_in) if isinstance(each, Source) else each for each in first)
    if taken.erased or taken.owner != fact.owner or first != ask.statement_of(fact):
        return False
    return shared is None or taken.acl == ask.acl_of(shared.readers(), shared.writers())


async def refuse_other_save(
    desk: Desk, item_id: str, event_id: str, fact: KnowledgeSaved, shared: KnowledgeShared | None
) -> None:
    """Raise IdempotencyMismatch when the save under this event's id differs.

    An erased statement cannot be compared and is accepted.
    """
    taken = (await desk.view.ask(ask.saved_statements, desk.org, [item_id])).get(item_id)
    if taken is None or taken.event_id != event_id or taken.erased:
        return
    if not same_statement(fact, shared, taken):
        raise mismatch()

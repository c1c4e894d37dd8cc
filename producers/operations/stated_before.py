"""Was this said before under the same key, and did it say the same? As the log has it, so on any node, at any time.

The ids of a request's events follow from its Idempotency-Key, and are their actor's. One that is kept already answers
a retry; where it says something else, the key was reused by mistake. What an event does not keep of a request (how
many results a focus asks for) is compared by producers/http/repeated.py alone, for as long as that remembers.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection
from typing import Any

import orjson

from kledger.contract.errors import VersionConflict
from kledger.contract.scopes import Caller
from ledger.event import Fact, JsonObject, NewEvent
from ledger.events.evolution import EvolutionRequested
from ledger.events.goal import GoalFocused
from ledger.events.knowledge import KnowledgeRated, KnowledgeSaved, KnowledgeScored, KnowledgeShared, Source
from ledger.events.resource import ResourceSaved
from ledger.events.slim import SlimRequested
from producers.operations.desk import Desk, reach_head
from producers.operations.knowledge.stating import FILLED_IN
from producers.operations.publish import NAMESPACE, mismatch, publish
from projections.views.knowledge import ask
from projections.views.lineage import ask as events
from projections.views.lineage.ask import StatedEvent

ATTEMPTS = 3
_NOT_ASKED: dict[type[Fact], frozenset[str]] = {
    KnowledgeRated: frozenset({"through"}),
    KnowledgeScored: frozenset({"through"}),
    EvolutionRequested: frozenset({"base_version"}),
    GoalFocused: frozenset({"items", "recall"}),
    ResourceSaved: frozenset({"secure_body"}),
    SlimRequested: frozenset({"model"}),
}
"""Fields of an event that are not the request's to say, but follow from how the node and the item stood."""


def asked(fact: Fact) -> JsonObject:
    """What of a fact a request said."""
    return fact.model_dump(mode="json", exclude=set(_NOT_ASKED.get(type(fact), ())))


def agrees(said: JsonObject, kept: StatedEvent) -> bool:
    """Whether an event says this; what was erased with its person says nothing that could be compared."""
    return all(kept.erases(name) or _same(value, kept.data.get(name)) for name, value in said.items())


def refuse_other(fact: Fact, entity_id: str, kept: StatedEvent) -> None:
    """Raise IdempotencyMismatch where the event that is kept under a key's id says something else than this."""
    if (fact.name, entity_id) != (kept.type, kept.entity_id) or not agrees(asked(fact), kept):
        raise mismatch()


def may_state(caller: Caller, owner: str) -> set[str]:
    """Who may have stated what came with a key of this caller's: the owner it names now, or another entity of its own.

    The operator states things for anybody, and only the owner that it names now is looked for.
    """
    return {owner, *caller.reading_as()}


async def may_have_stated(desk: Desk, caller: Caller, item_id: str) -> set[str]:
    """Who may have stated of an item what came with a key of this caller's, whoever owns it by now.

    The operator states things as the owner, whoever that was.
    """
    owners = await desk.view.ask(ask.owners, desk.org, item_id) if caller.is_operator else []
    return {*caller.reading_as(), *owners}


async def made(
    desk: Desk, actors: Collection[str], ids: Collection[str] = (), beginning: str | None = None
) -> dict[str, StatedEvent]:
    """What a key has made, out of ALL that it can make here: events of these ids, or whose ids begin so; by id.

    An operation that keeps several events of a request has to ask for more than the request states now: what came
    with the key before may have said more (`refuse_more`), or something else in another place.
    """
    if not ids and beginning is None:
        return {}
    return await desk.view.ask(events.stated_events, desk.org, actors, list(ids), beginning)


def refuse_more(kept: Collection[str], said: Collection[str]) -> None:
    """Raise IdempotencyMismatch where a key has made something that the request does not say now."""
    if not set(kept) <= set(said):
        raise mismatch()


async def stated(desk: Desk, actors: Collection[str], own_id: str, said: JsonObject) -> StatedEvent | None:
    """The event that one of these actors stated under this id, None when there is none.

    Raises IdempotencyMismatch when it says something else than `said`, by field.
    """
    before = (await desk.view.ask(events.stated_events, desk.org, actors, [own_id])).get(own_id)
    if before is not None and not agrees(said, before):
        raise mismatch()
    return before


async def begun(
    desk: Desk, caller: Caller, kind: str, own_id: str, event: Callable[[str], NewEvent], retry: uuid.UUID | None
) -> str:
    """Begin a process with the event made for its id, and return that id; a retry gets the one that was begun.

    Ids that follow from a key can be guessed, and used first by whoever may publish; then the process gets another
    one. Raises IdempotencyMismatch, VersionConflict, and what publishing raises.
    """
    name = f"{kind}-{uuid.uuid5(NAMESPACE, own_id).hex[:16]}"
    for _ in range(ATTEMPTS):
        if retry is not None and (before := await _begun_before(desk, caller, own_id, event, name)) is not None:
            return before
        try:
            (kept,) = await publish(desk.ledger, desk.tally, [event(name)])
        except VersionConflict:
            await reach_head(desk)
            name = other_name(kind)
            continue
        if kept.duplicate and retry is not None:
            await desk.view.wait_for(kept.position)
            return await _begun_before(desk, caller, own_id, event, name) or name
        return name
    raise VersionConflict(f"others keep taking the ids of every new {kind}: try again")


def other_name(kind: str) -> str:
    """An id of a process that nobody can guess."""
    return f"{kind}-{uuid.uuid4().hex[:16]}"


async def _begun_before(
    desk: Desk, caller: Caller, own_id: str, event: Callable[[str], NewEvent], name: str
) -> str | None:
    before = (await made(desk, may_state(caller, event(name).actor), [own_id])).get(own_id)
    if before is None:
        return None
    if not agrees(asked(event(before.entity_id).fact), before):
        raise mismatch()
    return before.entity_id


def _same(said: Any, kept: Any) -> bool:
    return bool(orjson.loads(orjson.dumps(said)) == kept)


def same(fact: KnowledgeSaved, shared: KnowledgeShared | None, taken: ask.SavedStatement) -> bool:
    """True when a save states what the item said first, and with an ACL, what it was shared with at once.

    `fact` is as it was stated: what it leaves to be filled in is not compared. What was erased says nothing: least of
    all what stands in its place.
    """
    left = {name: None for name in FILLED_IN if getattr(fact.source, name) is None}
    said = taken.statement
    if left:
        said = tuple(each.model_copy(update=left) if isinstance(each, Source) else each for each in said)
    if taken.erased or taken.owner != fact.owner or said != ask.statement_of(fact):
        return False
    return shared is None or taken.acl == ask.acl_of(shared.readers(), shared.writers())


async def refuse_another(
    desk: Desk, item_id: str, event_id: str, fact: KnowledgeSaved, shared: KnowledgeShared | None
) -> None:
    """Raise IdempotencyMismatch when the save that was kept under this event's key said something else.

    What was erased with its person says nothing that could be compared.
    """
    taken = (await desk.view.ask(ask.saved_statements, desk.org, [item_id])).get(item_id)
    if taken is None or taken.event_id != event_id or taken.erased:
        return
    if not same(fact, shared, taken):
        raise mismatch()

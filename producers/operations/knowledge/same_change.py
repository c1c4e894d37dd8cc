"""Deduplication of the parts of one change: by its Idempotency-Key, and of cases that count once.

The id of each part is derived from the key and the name of the part alone, independent of the other parts. So all ids
that a key can have produced for an item are known without the request, and are looked up in one query.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kledger.contract.errors import IdempotencyMismatch
from kledger.contract.scopes import Caller
from ledger.event import Fact, Lineage
from ledger.events.evolution import EvolutionRequested
from ledger.events.knowledge import KnowledgeRated, KnowledgeRevised, KnowledgeScored
from producers.operations.desk import Desk, reach_head
from producers.operations.publish import event_id, mismatch
from producers.operations.same_case import case_event_id
from producers.operations.stated_before import events_of_key, matches, past_actors, refuse_extra, request_fields
from producers.operations.updated import PARTS
from projections.views.lineage.ask import StatedEvent

_NAMES = {
    "revised": KnowledgeRevised.name,
    "scored": KnowledgeScored.name,
    "helpful": KnowledgeRated.name,
    "harmful": KnowledgeRated.name,
    "evolution": EvolutionRequested.name,
}


@dataclass(frozen=True, slots=True)
class Before:
    """The event id of each part, and the parts in the log. `by_key`: some of them are there under the request's key."""

    ids: Mapping[str, str]
    kept: Mapping[str, StatedEvent]
    by_key: bool


@dataclass(frozen=True, slots=True)
class Change:
    """The facts of a change by part, and the ids for their events where none is in the log yet."""

    item_id: str
    facts: Mapping[str, Fact]
    lineage: Lineage
    retry: uuid.UUID | None
    ids: Mapping[str, str]


def change(item_id: str, facts: Mapping[str, Fact], lineage: Lineage, retry: uuid.UUID | None) -> Change:
    """A change, with the ids that its events will have."""
    return Change(item_id, facts, lineage, retry, {part: event_id(retry, part) for part in facts})


async def before(desk: Desk, caller: Caller, change: Change, judging: Collection[str]) -> Before:
    """The parts of a change that are in the log; `judging` is the entity that judges the item now, where one does.

    With a key, any entity of the caller counts as actor: who may publish the change can have changed since, by this
    very change. Raises IdempotencyMismatch where the key has produced more parts, or different ones.
    """
    position = desk.view.position
    earlier = await _before(desk, caller, change, judging)
    if earlier.by_key and earlier.kept.keys() != change.facts.keys() and await reach_head(desk) > position:
        # All parts of a key are appended in one batch, but may be folded one event after the other.
        return await _before(desk, caller, change, judging)
    return earlier


def unkept() -> IdempotencyMismatch:
    """The error for a part that was not appended when its key appended the others.

    It was refused then, or not part of the request: the log cannot tell the two apart.
    """
    return IdempotencyMismatch(
        "this was not kept when the Idempotency-Key was sent before: send it with a key of its own"
    )


async def _before(desk: Desk, caller: Caller, change: Change, judging: Collection[str]) -> Before:
    actors = set(judging)
    if change.retry is not None:
        actors |= await past_actors(desk, caller, change.item_id)
    cases = {part: _cases(desk.org, change, part, [*judging, *sorted(actors - set(judging))]) for part in change.facts}
    own, earlier = _ids_of_key(change.retry)
    events = await events_of_key(desk, actors, [*own, *earlier, *(each for ids in cases.values() for each in ids)])
    by_key = events.keys() & (own | earlier)
    ids = dict(change.ids) if by_key.isdisjoint(earlier) else _earlier_ids(change)
    refuse_extra(by_key, ids.values())
    for part, candidates in cases.items():
        if candidates and ids[part] not in events:  # it counts once, whoever published it
            ids[part] = next((name for name in candidates if name in events), candidates[0])
    kept = {part: events[name] for part, name in ids.items() if name in events}
    for part, event in kept.items():
        if event.type != _NAMES[part] or not matches(request_fields(change.facts[part]), event):
            raise mismatch()
    return Before(ids, kept, bool(by_key))


def _ids_of_key(retry: uuid.UUID | None) -> tuple[set[str], set[str]]:
    """All event ids that a key can produce for an item: the current form, and the form of earlier versions.

    Earlier versions derived them from the event's name and its number in the request. A client whose node is upgraded
    retries on the new one, and more ids cost next to nothing in a query that is made anyhow.
    """
    if retry is None:
        return set(), set()
    numbered = {event_id(retry, f"{name}{number}") for name in _NAMES.values() for number in range(len(PARTS))}
    return {event_id(retry, part) for part in PARTS}, numbered


def _earlier_ids(change: Change) -> dict[str, str]:
    return {part: event_id(change.retry, f"{_NAMES[part]}{number}") for number, part in enumerate(change.facts)}


def _cases(org: str, change: Change, part: str, actors: Collection[str]) -> list[str]:
    """The event ids of a case that counts once, one for each of these actors; empty for other parts."""
    fact = change.facts[part]
    if not isinstance(fact, KnowledgeRated):
        return []
    ids = [case_event_id(org, change.item_id, actor, fact, change.lineage) for actor in actors]
    return [each for each in ids if each is not None]

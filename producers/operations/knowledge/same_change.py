"""What of a change of one item is kept already, by its Idempotency-Key or because a case counts once?

The id of each part follows from the key and the name of the part alone, whatever else is stated beside it. So all that
a key can have made of an item is known without the request, and is asked for in one question.
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
from producers.operations.knowledge.same_case import case_event_id
from producers.operations.knowledge.updated import PARTS
from producers.operations.publish import event_id, mismatch
from producers.operations.stated_before import agrees, asked, made, may_have_stated, refuse_more
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
    """The event id of each part of a change, and what of it is kept. `by_key`: some of it under the request's key."""

    ids: Mapping[str, str]
    kept: Mapping[str, StatedEvent]
    by_key: bool


@dataclass(frozen=True, slots=True)
class Change:
    """What a request says of one item, by part; the ids are those of new events where nothing is kept."""

    item_id: str
    said: Mapping[str, Fact]
    lineage: Lineage
    retry: uuid.UUID | None
    ids: Mapping[str, str]


def change(item_id: str, said: Mapping[str, Fact], lineage: Lineage, retry: uuid.UUID | None) -> Change:
    """A change, with the ids that its events will have."""
    return Change(item_id, said, lineage, retry, {part: event_id(retry, part) for part in said})


async def before(desk: Desk, caller: Caller, change: Change, judging: Collection[str]) -> Before:
    """What of a change is kept; `judging` is the entity that judges the item now, where one does.

    With a key it is looked for as stated by any entity of the caller's: which of them may state it can have changed
    since, by this very change. Raises IdempotencyMismatch where the key has made more than this, or something else.
    """
    seen = desk.view.position
    found = await _before(desk, caller, change, judging)
    if found.by_key and found.kept.keys() != change.said.keys() and await reach_head(desk) > seen:
        # All that a key keeps of a change is appended at once, and may be folded one event after the other.
        return await _before(desk, caller, change, judging)
    return found


def unkept() -> IdempotencyMismatch:
    """Why a part of a change is not kept that its key did not keep when it kept the others.

    It was refused then, or not said: the log cannot tell the two apart.
    """
    return IdempotencyMismatch(
        "this was not kept when the Idempotency-Key was sent before: send it with a key of its own"
    )


async def _before(desk: Desk, caller: Caller, change: Change, judging: Collection[str]) -> Before:
    actors = set(judging)
    if change.retry is not None:
        actors |= await may_have_stated(desk, caller, change.item_id)
    cases = {part: _cases(desk.org, change, part, [*judging, *sorted(actors - set(judging))]) for part in change.said}
    own, earlier = _all_of(change.retry)
    found = await made(desk, actors, [*own, *earlier, *(each for ids in cases.values() for each in ids)])
    by_key = found.keys() & (own | earlier)
    ids = dict(change.ids) if by_key.isdisjoint(earlier) else _earlier_ids(change)
    refuse_more(by_key, ids.values())
    for part, names in cases.items():
        if names and ids[part] not in found:  # it counts once, whoever of the caller stated it, and with which key
            ids[part] = next((name for name in names if name in found), names[0])
    kept = {part: found[name] for part, name in ids.items() if name in found}
    for part, event in kept.items():
        if event.type != _NAMES[part] or not agrees(asked(change.said[part]), event):
            raise mismatch()
    return Before(ids, kept, bool(by_key))


def _all_of(retry: uuid.UUID | None) -> tuple[set[str], set[str]]:
    """All ids that a key can make of an item; the second are those that it made before they followed from the part.

    Those followed from the event's name and its number in the request. A client whose node is stopped to be upgraded
    sends its request again to the new one, and more ids in a question that is asked anyhow cost next to nothing.
    """
    if retry is None:
        return set(), set()
    numbered = {event_id(retry, f"{name}{number}") for name in _NAMES.values() for number in range(len(PARTS))}
    return {event_id(retry, part) for part in PARTS}, numbered


def _earlier_ids(change: Change) -> dict[str, str]:
    return {part: event_id(change.retry, f"{_NAMES[part]}{number}") for number, part in enumerate(change.said)}


def _cases(org: str, change: Change, part: str, actors: Collection[str]) -> list[str]:
    """The ids of a case that counts once, as each of these entities states it; none of anything else."""
    fact = change.said[part]
    if not isinstance(fact, KnowledgeRated):
        return []
    ids = [case_event_id(org, change.item_id, actor, fact, change.lineage) for actor in actors]
    return [each for each in ids if each is not None]

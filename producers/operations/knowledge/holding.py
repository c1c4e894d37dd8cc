"""Statements that are held: new items of an import, an extraction or a document that say what a person had retired.

Whoever saves a single item says it themselves, and is not held. What is held is an event, so that nothing is lost: a
person releases it, and it is saved as it was stated, or drops it (memory/releasing.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from kledger.contract.errors import InvalidPayload, LedgerError
from kledger.contract.scopes import Caller
from ledger.event import NewEvent
from ledger.events.knowledge import KnowledgeSaved
from ledger.events.statement import StatementHeld
from ledger.named_ids import named_id
from producers.operations.desk import Desk
from producers.operations.judged import refused_of
from producers.operations.publish import NAMESPACE, publish
from projections.similar.tombstones import SaidAgain, Stated, said_again

ALONE = ("payload_too_large", "illegal_subject", "subject_forgotten", "invalid_payload")
"""Errors of a single item; the others are held."""


@dataclass(frozen=True, slots=True)
class HeldBack:
    """Where a new item is held, and the item that a person had retired or corrected; or why it cannot be held."""

    id: str
    item_id: str
    position: int | None = None
    error: LedgerError | None = None


async def held_back(desk: Desk, caller: Caller, items: Mapping[int, Sequence[NewEvent]]) -> dict[int, HeldBack]:
    """Those of these new items, by the keys of `items`, that a person retired or corrected before: they are held, and
    are not to be saved. Of each item, `items` has the events that would save it, its knowledge.saved first.

    One look for all, and none at the items where the ledger has no tombstone. An item that is held already, or that was
    dropped, makes no further event. What the gate refuses to hold is an error. Raises BrokerUnavailable, ViewBehind.
    """
    stated = {key: _stated(events[0]) for key, events in items.items()}
    if not stated:
        return {}
    await desk.view.wait_for(desk.tally.corrected)
    found = await desk.view.ask(said_again, desk.org, caller, stated)
    held: dict[int, HeldBack] = {}
    new: dict[str, NewEvent] = {}
    for key, again in found.items():
        held[key] = HeldBack(again.held_id, again.item_id, again.held_at)
        if again.standing is None and again.held_id not in new:
            try:
                new[again.held_id] = held_event(items[key], again)
            except InvalidPayload as error:
                held[key] = HeldBack(again.held_id, again.item_id, error=error)
    kept = await _kept(desk, list(new.values()))
    refused = await refused_of(desk, [each for each in kept.values() if isinstance(each, int)])
    meanwhile = {key: stated[key] for key, each in held.items() if kept.get(each.id) in refused}
    found = await desk.view.ask(said_again, desk.org, caller, meanwhile)
    for key, each in held.items():
        outcome = kept.get(each.id)
        if isinstance(outcome, int) and outcome in refused:
            outcome = (found[key].held_at if key in found else None) or refused[outcome]  # it was held meanwhile
        if isinstance(outcome, LedgerError):
            held[key] = HeldBack(each.id, each.item_id, error=outcome)
        elif outcome is not None and each.error is None:
            held[key] = HeldBack(each.id, each.item_id, outcome)
    return held


def _stated(event: NewEvent) -> Stated:
    fact = event.fact
    assert isinstance(fact, KnowledgeSaved)  # the first event of a new item
    return Stated(fact.task, fact.content, fact.owner, tuple(fact.scopes))


def held_event(events: Sequence[NewEvent], again: SaidAgain) -> NewEvent:
    """The event that holds an item instead of saving it. Raises InvalidPayload."""
    saved = events[0]
    try:
        fact = StatementHeld.of([each.fact for each in events], saved.entity_id, again.item_id, again.retired_at)
    except ValidationError as error:
        raise InvalidPayload(
            f"a person retired this before ({again.item_id}), and it is nested too deeply to be held: flatten its tags",
            errors=[],
        ) from error
    own_id = named_id(NAMESPACE, f"{saved.org}\n{again.held_id}\nheld")
    return NewEvent(fact, again.held_id, saved.actor, saved.org, saved.lineage, id=own_id)


async def _kept(desk: Desk, events: Sequence[NewEvent]) -> dict[str, int | LedgerError]:
    """Append the events; by the id of what is held, the position, or the error of that event alone."""
    try:
        appended = await publish(desk.ledger, desk.tally, events)
        return {event.entity_id: each.position for event, each in zip(events, appended, strict=True)}
    except LedgerError as error:
        if error.code not in ALONE:
            raise
    kept: dict[str, int | LedgerError] = {}
    for event in events:
        try:
            (one,) = await publish(desk.ledger, desk.tally, [event])
            kept[event.entity_id] = one.position
        except LedgerError as error:
            if error.code not in ALONE:
                raise
            kept[event.entity_id] = error
    return kept

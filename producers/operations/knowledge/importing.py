"""How do many items get in at once? Up to 1,000 payloads, each judged on its own, kept in atomic batches.

Importing the same again appends nothing: the event id of an item follows from what it says, and an item
that is there with the same statement is unchanged. The event loop is held for milliseconds at most, and an import
rests while somebody searches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import orjson

from kledger.contract.errors import LedgerError, VersionConflict
from kledger.contract.scopes import Caller, further_types
from ledger.event import JsonObject, Lineage, NewEvent
from ledger.events.knowledge import KnowledgeRated, KnowledgeSaved, KnowledgeShared
from producers.operations.admin.scope_types import require_types
from producers.operations.backpressure import Turns
from producers.operations.desk import Desk, reach_head
from producers.operations.knowledge.acl import first_acl, named_entities, shared_with_it, statement
from producers.operations.knowledge.changes import ATTEMPTS, exists, referring, statement_id
from producers.operations.knowledge.first_cases import first_cases, with_its_cases
from producers.operations.knowledge.stating import lineage_of, saved_fact
from producers.operations.knowledge.unreadable import warnings
from producers.operations.knowledge.updated import error_body
from producers.operations.publish import SLICE, publish
from producers.operations.resources.together import keep_alone, together
from producers.operations.stated_before import same
from producers.requests.knowledge import SaveManyRequest, SaveRequest, parse
from producers.requests.resources import ResourceRequest
from projections.views.knowledge import ask

OF_ONE_ITEM = ("payload_too_large", "illegal_subject", "subject_forgotten")
"""Errors that concern one item of a batch; the others are kept."""
OF_THE_NODE = ("broker_unavailable", "broker_misconfigured", "view_behind")
"""Errors for which no item of a batch is at fault."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one payload of a batch."""

    index: int
    id: str | None
    outcome: Literal["saved", "unchanged", "refused"]
    position: int | None = None
    error: JsonObject | None = None
    warnings: list[JsonObject] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SavedMany:
    """What became of a batch; `position` is the last one that its items have."""

    results: list[Outcome]
    saved: int
    unchanged: int
    refused: int
    position: int


@dataclass(slots=True)
class _Batch:
    """A batch on its way: what is settled, what is still to be kept, and what some of it is shared with."""

    results: dict[int, Outcome]
    open: dict[int, NewEvent]
    shared: dict[int, KnowledgeShared] = field(default_factory=dict)
    cases: dict[int, list[KnowledgeRated]] = field(default_factory=dict)
    resources: dict[int, list[ResourceRequest]] = field(default_factory=dict)

    def events(self, index: int, event: NewEvent | None = None) -> list[NewEvent]:
        """What is to be kept of one payload, all of it or nothing; `event` takes the place of its save."""
        event = event or self.open[index]
        return [
            event,
            *shared_with_it(event, self.shared.get(index)),
            *with_its_cases(event, self.cases.get(index, ())),
        ]

    def facts(self) -> Iterator[tuple[int, KnowledgeSaved]]:
        """What is open, as it is saved."""
        for index, event in self.open.items():
            assert isinstance(event.fact, KnowledgeSaved)  # this is a batch of saves
            yield index, event.fact

    def refuse(self, index: int, item_id: str | None, error: LedgerError) -> None:
        self.results[index] = Outcome(index, item_id, "refused", error=error_body(error))
        self.open.pop(index, None)

    def settle(self, index: int, outcome: Literal["saved", "unchanged"], position: int) -> None:
        self.results[index] = Outcome(index, self.open.pop(index).entity_id, outcome, position)


async def save_many(desk: Desk, caller: Caller, lineage: Lineage, request: SaveManyRequest) -> SavedMany:
    """Keep many new items: each is saved, unchanged, or refused with its error.

    Raises BrokerUnavailable, ViewBehind; then some may be kept, and sending the same again is safe.
    """
    batch, twins = await _judged(desk, caller, lineage, request)
    said = {index: batch.open[twins.get(index, index)] for index in batch.resources}
    referred = {index: referring(fact, batch.shared.get(index)) for index, fact in batch.facts() if fact.resource_ids}
    for attempt in range(ATTEMPTS):
        await _look(desk, batch)
        if not batch.open:
            break
        if attempt == ATTEMPTS - 1:
            await _one_by_one(desk, caller, batch)
            break
        try:
            await _publish(desk, batch)
            await _one_by_one(desk, caller, batch)  # those that come with resources
        except VersionConflict:  # an id was taken since, or has a history that the gate refused
            await reach_head(desk)
            if attempt:
                await _one_by_one(desk, caller, batch)
                break
            continue
        except LedgerError as error:
            if error.code not in OF_ONE_ITEM:
                raise
            await _one_by_one(desk, caller, batch)
            break
    for index, first in twins.items():
        before = batch.results[first]
        outcome = "unchanged" if before.outcome == "saved" else before.outcome
        batch.results[index] = Outcome(index, before.id, outcome, before.position, before.error)
    await _resources_of_the_unchanged(desk, caller, batch, said)
    kept = {index: each for index, each in referred.items() if batch.results[index].outcome != "refused"}
    for index, told in (await warnings(desk, caller, kept)).items():
        batch.results[index] = replace(batch.results[index], warnings=told)
    results = [batch.results[index] for index in sorted(batch.results)]
    counts = {name: sum(r.outcome == name for r in results) for name in ("saved", "unchanged", "refused")}
    position = max((r.position for r in results if r.position), default=desk.view.position)
    return SavedMany(results, counts["saved"], counts["unchanged"], counts["refused"], position)


async def _judged(
    desk: Desk, caller: Caller, lineage: Lineage, request: SaveManyRequest
) -> tuple[_Batch, dict[int, int]]:
    """The payloads as events, and which of them repeat an earlier one (index to its index)."""
    batch = _Batch({}, {})
    first: dict[str, int] = {}
    twins: dict[int, int] = {}
    admitted: set[str] = set()
    turns = Turns(desk.tally)
    for index, document in enumerate(request.items):
        named = document.get("id")
        try:
            payload = parse(SaveRequest, document, f"items[{index}]")
            fact, shared = saved_fact(payload, caller), first_acl(payload, caller)
            cases = first_cases(payload)
            if not (kinds := further_types(entities := named_entities(fact, shared))) <= admitted:
                await require_types(desk, entities)
                admitted |= kinds
            said = statement(fact, shared)
            item_id = payload.id or content_id(fact, shared)
            own_id = statement_id(desk.org, item_id, said)
            event = NewEvent(fact, item_id, fact.owner, desk.org, lineage_of(lineage, payload), id=own_id, expects=0)
            if item_id in first:
                if batch.open[first[item_id]].id != own_id:
                    raise exists(item_id)
                twins[index] = first[item_id]
            else:
                first[item_id] = index
                batch.open[index] = event
                if shared is not None:
                    batch.shared[index] = shared
                if cases:
                    batch.cases[index] = cases
            if payload.resources:
                batch.resources[index] = payload.resources
        except LedgerError as error:
            batch.refuse(index, named if isinstance(named, str) else None, error)
        await turns.when_due()
    return batch, twins


def content_id(fact: KnowledgeSaved, shared: KnowledgeShared | None) -> str:
    """The id of an item whose payload has none: it follows from what the item says, and whom it is shared with."""
    document = fact.model_dump(mode="json", exclude={"origin"})
    document |= {} if shared is None else shared.model_dump(mode="json")
    said = orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
    return f"knowledge-{hashlib.sha256(said).hexdigest()[:20]}"


async def _look(desk: Desk, batch: _Batch) -> None:
    """Settle what the view has already: unchanged when it says the same, else refused."""
    ids = {event.entity_id: index for index, event in batch.open.items()}
    taken = await desk.view.ask(ask.saved_statements, desk.org, list(ids))
    turns = Turns(desk.tally)
    for item_id, before in taken.items():
        index = ids[item_id]
        event = batch.open[index]
        assert isinstance(event.fact, KnowledgeSaved)  # this is a batch of saves
        if before.event_id == event.id or same(event.fact, batch.shared.get(index), before):
            batch.settle(index, "unchanged", before.position)
        else:
            batch.refuse(index, item_id, exists(item_id))
        await turns.when_due()


async def _publish(desk: Desk, batch: _Batch) -> None:
    """Append what is open, slice by slice; what is kept is settled even when a later slice fails."""
    turns = Turns(desk.tally)
    for events in _slices(batch):
        kept = iter(await publish(desk.ledger, desk.tally, [event for each in events.values() for event in each]))
        for index, each in events.items():
            *_, last = where = [next(kept) for _ in each]
            batch.settle(index, "unchanged" if where[0].duplicate else "saved", last.position)
        await turns.give_way()


def _slices(batch: _Batch) -> Iterator[dict[int, list[NewEvent]]]:
    """What is open and comes without resources, in parts of at most SLICE events; one payload stands in one of them."""
    part: dict[int, list[NewEvent]] = {}
    size = 0
    for index in list(batch.open):
        if index in batch.resources:
            continue
        events = batch.events(index)
        if size + len(events) > SLICE:
            yield part
            part, size = {}, 0
        part[index] = events
        size += len(events)
    if part:
        yield part


async def _resources_of_the_unchanged(desk: Desk, caller: Caller, batch: _Batch, said: Mapping[int, NewEvent]) -> None:
    """Keep what the resources say anew of items that are there already; where that is refused, so is the payload."""
    for index, event in said.items():
        assert isinstance(event.fact, KnowledgeSaved)  # this is a batch of saves
        if batch.results[index].outcome != "unchanged":
            continue
        try:
            await keep_alone(desk, caller, event.lineage, batch.resources[index], event.fact)
        except LedgerError as error:
            if error.code in OF_THE_NODE:
                raise
            batch.refuse(index, event.entity_id, error)


async def _one_by_one(desk: Desk, caller: Caller, batch: _Batch) -> None:
    """Keep what is left item by item, so that one that cannot be kept does not hold up the others."""
    for index, event in list(batch.open.items()):
        expects = 0
        for attempt in range(ATTEMPTS):
            again = replace(event, expects=expects)
            try:
                brought = await _brought(desk, caller, batch, index, event)
            except LedgerError as error:
                if error.code in OF_THE_NODE:
                    raise
                batch.refuse(index, event.entity_id, error)
                break
            try:
                events = [*brought, *batch.events(index, again)]
                kept = (await publish(desk.ledger, desk.tally, events))[len(brought) :]
            except VersionConflict as error:
                await reach_head(desk)
                alone = _Batch(batch.results, {index: event}, batch.shared, batch.cases)
                await _look(desk, alone)
                if not alone.open:
                    batch.open.pop(index)
                    break
                if attempt == ATTEMPTS - 1:
                    batch.refuse(index, event.entity_id, error)
                expects = await desk.ledger.last_position_of(desk.org, "knowledge", event.entity_id)
            except LedgerError as error:
                if error.code not in OF_ONE_ITEM:
                    raise
                batch.refuse(index, event.entity_id, error)
                break
            else:
                batch.settle(index, "unchanged" if kept[0].duplicate else "saved", kept[-1].position)
                break


async def _brought(desk: Desk, caller: Caller, batch: _Batch, index: int, event: NewEvent) -> list[NewEvent]:
    assert isinstance(event.fact, KnowledgeSaved)  # this is a batch of saves
    return await together(desk, caller, event.lineage, batch.resources.get(index, ()), event.fact)

"""Import of up to 1,000 payloads: each is judged on its own, and they are appended in atomic batches.

Importing the same again appends nothing: the event id of an item is derived from its content, and an item that is
there with the same statement is reported as unchanged. The event loop is blocked for milliseconds at most, and an
import pauses while somebody searches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

import orjson

from kledger.answers.knowledge import HeldFor, SavedOne
from kledger.answers.parts import Fault
from kledger.contract.errors import InvalidPayload, LedgerError, VersionConflict
from kledger.contract.scopes import Caller, further_types
from kledger.contract.words import ImportOutcome
from kledger.requests.knowledge import SaveManyRequest, SaveRequest
from kledger.requests.resources import ResourceRequest
from ledger.event import JsonObject, Lineage, NewEvent
from ledger.events.knowledge import KnowledgeRated, KnowledgeSaved, KnowledgeShared
from producers.operations.admin.scope_types import require_types
from producers.operations.backpressure import Turns
from producers.operations.desk import Desk, reach_head
from producers.operations.first_cases import first_cases, with_its_cases
from producers.operations.knowledge.acl import first_acl, named_entities, shared_with_it, statement
from producers.operations.knowledge.holding import HeldBack, held_back
from producers.operations.knowledge.proposing import first_status
from producers.operations.knowledge.saving import exists, referring, statement_id
from producers.operations.knowledge.unreadable import warnings
from producers.operations.outcomes import ATTEMPTS
from producers.operations.publish import SLICE, publish
from producers.operations.resources.together import keep_alone, together
from producers.operations.stated_before import same_statement
from producers.operations.stating import lineage_of, saved_fact
from producers.operations.updated import error_body
from producers.requests.reading import parse
from projections.views.knowledge import ask

OF_ONE_ITEM = ("payload_too_large", "illegal_subject", "subject_forgotten")
"""Errors of a single item of a batch; the other items are saved."""
OF_THE_NODE = ("broker_unavailable", "broker_misconfigured", "view_behind")
"""Errors of the node, not of any item."""


OUTCOMES: tuple[ImportOutcome, ...] = get_args(ImportOutcome)
KEPT = ("saved", "unchanged")


@dataclass(slots=True)
class _Batch:
    """A batch in progress: settled outcomes, open saves, and the ACLs, cases and resources of some of them.

    `proposed` are those that wait for a coordinator once they are saved.
    """

    results: dict[int, SavedOne]
    open: dict[int, NewEvent]
    shared: dict[int, KnowledgeShared] = field(default_factory=dict)
    cases: dict[int, list[KnowledgeRated]] = field(default_factory=dict)
    resources: dict[int, list[ResourceRequest]] = field(default_factory=dict)
    proposed: set[int] = field(default_factory=set)

    def events(self, index: int, event: NewEvent | None = None) -> list[NewEvent]:
        """The events of one payload, to be appended atomically; `event` replaces its save."""
        event = event or self.open[index]
        return [
            event,
            *shared_with_it(event, self.shared.get(index)),
            *with_its_cases(event, self.cases.get(index, ())),
        ]

    def facts(self) -> Iterator[tuple[int, KnowledgeSaved]]:
        """The open saves by index."""
        for index, event in self.open.items():
            assert isinstance(event.fact, KnowledgeSaved)  # this is a batch of saves
            yield index, event.fact

    def refuse(self, index: int, item_id: str | None, error: LedgerError) -> None:
        self._keep(index, item_id, "refused", None, error_body(error))
        self.open.pop(index, None)

    def hold(self, index: int, held: HeldBack) -> None:
        """The outcome of a payload that a person had retired or corrected."""
        if held.error is not None:
            self.refuse(index, self.open[index].entity_id, held.error)
            return
        self._keep(index, self.open.pop(index).entity_id, "held", held.position)
        self.results[index]["held"] = HeldFor(id=held.id, item_id=held.item_id)

    def settle(self, index: int, outcome: Literal["saved", "unchanged"], position: int) -> None:
        self._keep(index, self.open.pop(index).entity_id, outcome, position)
        if outcome == "saved" and index in self.proposed:
            self.results[index]["status"] = "proposed"

    def repeat(self, index: int, first: int) -> None:
        """The outcome of a payload that repeats an earlier one of the batch."""
        before = self.results[first]
        outcome = "unchanged" if before["outcome"] == "saved" else before["outcome"]
        self._keep(index, before["id"], outcome, before["position"], before["error"])
        if "held" in before:
            self.results[index]["held"] = before["held"]

    def _keep(
        self, index: int, item_id: str | None, outcome: ImportOutcome, position: int | None, error: Fault | None = None
    ) -> None:
        self.results[index] = SavedOne(
            index=index, id=item_id, outcome=outcome, position=position, error=error, warnings=[]
        )


async def save_many(desk: Desk, caller: Caller, lineage: Lineage, request: SaveManyRequest) -> JsonObject:
    """Save many new items (SavedMany): each is saved, unchanged, held (a person retired it), or refused with its error.

    Raises BrokerUnavailable, ViewBehind; then some may be saved, and sending the same again is safe.
    """
    batch, repeated = await _judged(desk, caller, lineage, request)
    with_resources = {index: batch.open[repeated.get(index, index)] for index in batch.resources}
    referred = {index: referring(fact, batch.shared.get(index)) for index, fact in batch.facts() if fact.resource_ids}
    for attempt in range(ATTEMPTS):
        await _settle_known(desk, batch)
        if batch.open and not attempt:
            await _hold(desk, caller, batch)
        if not batch.open:
            break
        if attempt == ATTEMPTS - 1:
            await _one_by_one(desk, caller, batch)
            break
        try:
            await _publish(desk, batch)
            await _one_by_one(desk, caller, batch)  # the items with resources
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
    for index, first in repeated.items():
        batch.repeat(index, first)
    await _save_resources_of_unchanged(desk, caller, batch, with_resources)
    accepted = {index: each for index, each in referred.items() if batch.results[index]["outcome"] in KEPT}
    for index, item_warnings in (await warnings(desk, caller, accepted)).items():
        batch.results[index]["warnings"] = item_warnings
    results = [batch.results[index] for index in sorted(batch.results)]
    counts: JsonObject = {name: sum(r["outcome"] == name for r in results) for name in OUTCOMES}
    position = max((r["position"] for r in results if r["position"]), default=desk.view.position)
    return {"results": results, **counts, "position": position}


async def _judged(
    desk: Desk, caller: Caller, lineage: Lineage, request: SaveManyRequest
) -> tuple[_Batch, dict[int, int]]:
    """The payloads as events, and which of them repeat an earlier one (index to the index of that)."""
    batch = _Batch({}, {})
    first: dict[str, int] = {}
    repeated: dict[int, int] = {}
    admitted: set[str] = set()
    turns = Turns(desk.tally)
    for index, document in enumerate(request.items):
        document_id = document.get("id")
        try:
            payload = parse(SaveRequest, document, f"items[{index}]")
            fact, shared = saved_fact(payload, caller), first_acl(payload, caller)
            cases = first_cases(payload)
            if not (kinds := further_types(entities := named_entities(fact, shared))) <= admitted:
                await require_types(desk, entities)
                admitted |= kinds
            status = await first_status(desk, fact, shared)
            if fact.supersedes is not None:
                raise InvalidPayload(
                    f"it supersedes {fact.supersedes}, which is in force until then: save it in a request of its own",
                    errors=[{"field": "supersedes", "reason": "is for a single save"}],
                )
            content = statement(fact, shared)
            item_id = payload.id or content_id(fact, shared)
            own_id = statement_id(desk.org, item_id, content)
            event = NewEvent(fact, item_id, fact.owner, desk.org, lineage_of(lineage, payload), id=own_id, expects=0)
            if item_id in first:
                if batch.open[first[item_id]].id != own_id:
                    raise exists(item_id)
                repeated[index] = first[item_id]
            else:
                first[item_id] = index
                batch.open[index] = event
                if status == "proposed":
                    batch.proposed.add(index)
                if shared is not None:
                    batch.shared[index] = shared
                if cases:
                    batch.cases[index] = cases
            if payload.resources:
                batch.resources[index] = payload.resources
        except LedgerError as error:
            batch.refuse(index, document_id if isinstance(document_id, str) else None, error)
        await turns.when_due()
    return batch, repeated


def content_id(fact: KnowledgeSaved, shared: KnowledgeShared | None) -> str:
    """The id of an item whose payload has none: a hash of its content and its ACL."""
    document = fact.model_dump(mode="json", exclude={"origin"})
    document |= {} if shared is None else shared.model_dump(mode="json")
    canonical = orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
    return f"knowledge-{hashlib.sha256(canonical).hexdigest()[:20]}"


async def _settle_known(desk: Desk, batch: _Batch) -> None:
    """Settle items that the view has: unchanged where the statement is the same, else refused."""
    ids = {event.entity_id: index for index, event in batch.open.items()}
    taken = await desk.view.ask(ask.saved_statements, desk.org, list(ids))
    turns = Turns(desk.tally)
    for item_id, before in taken.items():
        index = ids[item_id]
        event = batch.open[index]
        assert isinstance(event.fact, KnowledgeSaved)  # this is a batch of saves
        if before.event_id == event.id or same_statement(event.fact, batch.shared.get(index), before):
            batch.settle(index, "unchanged", before.last)
        else:
            batch.refuse(index, item_id, exists(item_id))
        await turns.when_due()


async def _hold(desk: Desk, caller: Caller, batch: _Batch) -> None:
    """Hold those of the open saves that a person had retired or corrected. Their resources are not kept."""
    held = await held_back(desk, caller, {index: batch.events(index) for index in batch.open})
    for index, each in held.items():
        batch.hold(index, each)
        batch.resources.pop(index, None)


async def _publish(desk: Desk, batch: _Batch) -> None:
    """Append the open saves slice by slice; an appended slice is settled even when a later one fails."""
    turns = Turns(desk.tally)
    for events in _slices(batch):
        appended = iter(await publish(desk.ledger, desk.tally, [event for each in events.values() for event in each]))
        for index, each in events.items():
            *_, last = positions = [next(appended) for _ in each]
            batch.settle(index, "unchanged" if positions[0].duplicate else "saved", last.position)
        await turns.give_way()


def _slices(batch: _Batch) -> Iterator[dict[int, list[NewEvent]]]:
    """The open saves without resources, in slices of at most SLICE events; a payload is never split."""
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


async def _save_resources_of_unchanged(
    desk: Desk, caller: Caller, batch: _Batch, with_resources: Mapping[int, NewEvent]
) -> None:
    """Save changed resources of items that are unchanged; where that is refused, so is the payload."""
    for index, event in with_resources.items():
        assert isinstance(event.fact, KnowledgeSaved)  # this is a batch of saves
        if batch.results[index]["outcome"] != "unchanged":
            continue
        try:
            await keep_alone(desk, caller, event.lineage, batch.resources[index], event.fact)
        except LedgerError as error:
            if error.code in OF_THE_NODE:
                raise
            batch.refuse(index, event.entity_id, error)


async def _one_by_one(desk: Desk, caller: Caller, batch: _Batch) -> None:
    """Append the remaining saves item by item, so that one failure does not block the others."""
    for index, event in list(batch.open.items()):
        expects = 0
        for attempt in range(ATTEMPTS):
            retried = replace(event, expects=expects)
            try:
                resource_events = await _resource_events(desk, caller, batch, index, event)
            except LedgerError as error:
                if error.code in OF_THE_NODE:
                    raise
                batch.refuse(index, event.entity_id, error)
                break
            try:
                events = [*resource_events, *batch.events(index, retried)]
                appended = (await publish(desk.ledger, desk.tally, events))[len(resource_events) :]
            except VersionConflict as error:
                await reach_head(desk)
                alone = _Batch(batch.results, {index: event}, batch.shared, batch.cases, proposed=batch.proposed)
                await _settle_known(desk, alone)
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
                batch.settle(index, "unchanged" if appended[0].duplicate else "saved", appended[-1].position)
                break


async def _resource_events(desk: Desk, caller: Caller, batch: _Batch, index: int, event: NewEvent) -> list[NewEvent]:
    assert isinstance(event.fact, KnowledgeSaved)  # this is a batch of saves
    return await together(desk, caller, event.lineage, batch.resources.get(index, ()), event.fact)

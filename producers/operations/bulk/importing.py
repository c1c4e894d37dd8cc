"""Import of up to 1,000 payloads: each is judged on its own, and they are appended in atomic batches.

Importing the same again appends nothing: the event id of an item is derived from its content, and an item that is
there with the same statement is reported as unchanged. The event loop is blocked for milliseconds at most, and an
import pauses while somebody searches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import get_args

import orjson

from kledger.contract.errors import InvalidPayload, LedgerError, VersionConflict
from kledger.contract.scopes import Caller, further_types
from kledger.contract.words import ImportOutcome
from kledger.requests.knowledge import SaveManyRequest, SaveRequest
from ledger.event import JsonObject, Lineage, NewEvent
from ledger.events.knowledge import KnowledgeSaved, KnowledgeShared
from producers.operations.admin.scope_types import require_types
from producers.operations.backpressure import Turns
from producers.operations.bulk.import_batch import ImportBatch, OpenSave
from producers.operations.desk import Desk, reach_head
from producers.operations.first_cases import first_cases
from producers.operations.knowledge.acl import first_acl, named_entities, statement
from producers.operations.knowledge.holding import held_back
from producers.operations.knowledge.proposing import first_status, waits_for_a_project
from producers.operations.knowledge.saving import exists, referring, statement_id
from producers.operations.knowledge.unreadable import warnings
from producers.operations.outcomes import ATTEMPTS
from producers.operations.publish import SLICE, publish
from producers.operations.resources.together import keep_alone, together
from producers.operations.stated_before import same_statement
from producers.operations.stating import lineage_of, saved_fact
from producers.requests.reading import parse
from projections.views.knowledge import ask

OF_ONE_ITEM = ("payload_too_large", "illegal_subject", "subject_forgotten")
"""Errors of a single item of a batch; the other items are saved."""
OF_THE_NODE = ("broker_unavailable", "broker_misconfigured", "view_behind")
"""Errors of the node, not of any item."""
OUTCOMES: tuple[ImportOutcome, ...] = get_args(ImportOutcome)
KEPT = ("saved", "unchanged")


async def save_many(desk: Desk, caller: Caller, lineage: Lineage, request: SaveManyRequest) -> JsonObject:
    """Save many new items (SavedMany): each is saved, unchanged, held (a person retired it), or refused with its error.

    Raises BrokerUnavailable, ViewBehind; then some may be saved, and sending the same again is safe.
    """
    batch = await _judged(desk, caller, lineage, request)
    with_resources = {index: batch.open[batch.repeated.get(index, index)] for index in batch.resources}
    referred = {
        index: referring(save.fact, save.shared) for index, save in batch.open.items() if save.fact.resource_ids
    }
    shared = {index: save.item_id for index, save in batch.open.items() if waits_for_a_project(save.fact, save.shared)}
    await _settle_known(desk, batch, batch.open)
    await _hold(desk, caller, batch)
    await _append_together(desk, batch)
    await _append_one_by_one(desk, caller, batch)
    await _say_which_wait(desk, caller, batch, shared)
    batch.settle_repeated()
    await _save_resources_of_unchanged(desk, caller, batch, with_resources)
    accepted = {index: each for index, each in referred.items() if batch.results[index]["outcome"] in KEPT}
    for index, item_warnings in (await warnings(desk, caller, accepted)).items():
        batch.results[index]["warnings"] = item_warnings
    results = [batch.results[index] for index in sorted(batch.results)]
    counts: JsonObject = {name: sum(r["outcome"] == name for r in results) for name in OUTCOMES}
    position = max((r["position"] for r in results if r["position"]), default=desk.view.position)
    return {"results": results, **counts, "position": position}


async def _judged(desk: Desk, caller: Caller, lineage: Lineage, request: SaveManyRequest) -> ImportBatch:
    """The payloads, each open to be saved, refused, or a repetition of an earlier one."""
    batch = ImportBatch()
    admitted: set[str] = set()
    turns = Turns(desk.tally)
    for index, document in enumerate(request.items):
        try:
            payload = parse(SaveRequest, document, f"items[{index}]")
            batch.add(index, await _open_save(desk, caller, lineage, payload, admitted))
            if payload.resources:
                batch.resources[index] = payload.resources
        except LedgerError as error:
            document_id = document.get("id")
            batch.refuse(index, document_id if isinstance(document_id, str) else None, error)
        await turns.when_due()
    return batch


async def _open_save(
    desk: Desk, caller: Caller, lineage: Lineage, payload: SaveRequest, admitted: set[str]
) -> OpenSave:
    """The save of one payload. `admitted`: types of scopes that earlier ones had looked up, and it adds to them."""
    fact, shared = saved_fact(payload, caller), first_acl(payload, caller)
    cases = first_cases(payload)
    entities = named_entities(fact, shared)
    if not (types := further_types(entities)) <= admitted:
        await require_types(desk, entities)
        admitted |= types
    status = await first_status(desk, fact, shared)
    if fact.supersedes is not None:
        raise InvalidPayload(
            f"it supersedes {fact.supersedes}, which is in force until then: save it in a request of its own",
            errors=[{"field": "supersedes", "reason": "is for a single save"}],
        )
    item_id = payload.id or content_id(fact, shared)
    own_id = statement_id(desk.org, item_id, statement(fact, shared))
    event = NewEvent(fact, item_id, fact.owner, desk.org, lineage_of(lineage, payload), id=own_id, expects=0)
    return OpenSave(event, fact, shared, cases, proposed=status == "proposed")


async def _say_which_wait(desk: Desk, caller: Caller, batch: ImportBatch, shared: Mapping[int, str]) -> None:
    """Say of unchanged items that projects share (their ids by index) which still wait for a coordinator."""
    unchanged = {index: its_id for index, its_id in shared.items() if batch.results[index]["outcome"] == "unchanged"}
    if unchanged:
        now = await desk.view.ask(ask.standings, desk.org, caller, list(unchanged.values()))
        for index, item_id in unchanged.items():
            if item_id in now and now[item_id].status == "proposed":
                batch.results[index]["status"] = "proposed"


def content_id(fact: KnowledgeSaved, shared: KnowledgeShared | None) -> str:
    """The id of an item whose payload has none: a hash of its content and its ACL."""
    document = fact.model_dump(mode="json", exclude={"origin"})
    document |= {} if shared is None else shared.model_dump(mode="json")
    canonical = orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
    return f"knowledge-{hashlib.sha256(canonical).hexdigest()[:20]}"


async def _settle_known(desk: Desk, batch: ImportBatch, saves: Mapping[int, OpenSave]) -> None:
    """Settle open saves whose item the view has: unchanged where the statement is the same, else refused."""
    indexes = {save.item_id: index for index, save in saves.items()}
    taken = await desk.view.ask(ask.saved_statements, desk.org, list(indexes))
    turns = Turns(desk.tally)
    for item_id, before in taken.items():
        index = indexes[item_id]
        save = batch.open[index]
        if before.event_id == save.event.id or same_statement(save.fact, save.shared, before):
            batch.settle(index, "unchanged", before.last)
        else:
            batch.refuse(index, item_id, exists(item_id))
        await turns.when_due()


async def _hold(desk: Desk, caller: Caller, batch: ImportBatch) -> None:
    """Hold those of the open saves that a person had retired or corrected."""
    held = await held_back(desk, caller, {index: save.events() for index, save in batch.open.items()})
    for index, each in held.items():
        batch.hold(index, each)


async def _append_together(desk: Desk, batch: ImportBatch) -> None:
    """Append the open saves without resources; where one hinders the others, they stay open."""
    for _ in range(2):
        try:
            await _publish(desk, batch)
        except VersionConflict:  # an id was taken since, or has a history that the gate refused
            await reach_head(desk)
            await _settle_known(desk, batch, batch.open)
            continue
        except LedgerError as error:
            if error.code not in OF_ONE_ITEM:
                raise
        return


async def _publish(desk: Desk, batch: ImportBatch) -> None:
    """Append the open saves slice by slice; an appended slice is settled even when a later one fails."""
    turns = Turns(desk.tally)
    for events in _slices(batch):
        appended = iter(await publish(desk.ledger, desk.tally, [event for each in events.values() for event in each]))
        for index, each in events.items():
            *_, last = positions = [next(appended) for _ in each]
            batch.settle(index, "unchanged" if positions[0].duplicate else "saved", last.position)
        await turns.give_way()


def _slices(batch: ImportBatch) -> Iterator[dict[int, list[NewEvent]]]:
    """The open saves without resources, in slices of at most SLICE events; a payload is never split."""
    part: dict[int, list[NewEvent]] = {}
    size = 0
    for index, save in list(batch.open.items()):
        if index in batch.resources:
            continue
        events = save.events()
        if size + len(events) > SLICE:
            yield part
            part, size = {}, 0
        part[index] = events
        size += len(events)
    if part:
        yield part


async def _append_one_by_one(desk: Desk, caller: Caller, batch: ImportBatch) -> None:
    """Append the remaining saves item by item, so that one failure does not block the others."""
    for index, save in list(batch.open.items()):
        await _append_alone(desk, caller, batch, index, save)


async def _append_alone(desk: Desk, caller: Caller, batch: ImportBatch, index: int, save: OpenSave) -> None:
    expects = 0
    refusal: VersionConflict | None = None
    for _ in range(ATTEMPTS):
        try:
            resources = batch.resources.get(index, ())
            resource_events = await together(desk, caller, save.event.lineage, resources, save.fact)
        except LedgerError as error:
            if error.code in OF_THE_NODE:
                raise
            batch.refuse(index, save.item_id, error)
            return
        try:
            events = [*resource_events, *save.events(expects)]
            appended = (await publish(desk.ledger, desk.tally, events))[len(resource_events) :]
        except VersionConflict as error:
            refusal = error
            await reach_head(desk)
            await _settle_known(desk, batch, {index: save})
            if index not in batch.open:
                return
            expects = await desk.ledger.last_position_of(desk.org, "knowledge", save.item_id)
        except LedgerError as error:
            if error.code not in OF_ONE_ITEM:
                raise
            batch.refuse(index, save.item_id, error)
            return
        else:
            batch.settle(index, "unchanged" if appended[0].duplicate else "saved", appended[-1].position)
            return
    assert refusal is not None  # an attempt that ended without one has returned
    batch.refuse(index, save.item_id, refusal)


async def _save_resources_of_unchanged(
    desk: Desk, caller: Caller, batch: ImportBatch, with_resources: Mapping[int, OpenSave]
) -> None:
    """Save changed resources of items that are unchanged; where that is refused, so is the payload."""
    for index, save in with_resources.items():
        if batch.results[index]["outcome"] != "unchanged":
            continue
        try:
            await keep_alone(desk, caller, save.event.lineage, batch.resources[index], save.fact)
        except LedgerError as error:
            if error.code in OF_THE_NODE:
                raise
            batch.refuse(index, save.item_id, error)

"""How is an item judged and bettered? PUT /api/knowledge/{id} (mission K3, K10); many verdicts: verdicts.py.

Whoever reads an item may rate and score it, as themselves, and states the scope through which they read it; stating its
fields anew is its owner's, and theirs whom the ACL lets write.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ledger.errors import (
    IllegalState,
    InvalidPayload,
    LedgerError,
    NotAvailable,
    NotOwner,
    NotReader,
    VersionConflict,
    ViewBehind,
)
from ledger.event import Fact, JsonObject, Lineage, NewEvent
from ledger.events.evolution import EvolutionRequested
from ledger.events.knowledge import KnowledgeRated, KnowledgeRevised, KnowledgeScored
from ledger.readers import Judge, judge_of, readers
from ledger.scopes import Caller
from producers.operations import evolutions
from producers.operations.desk import Desk
from producers.operations.knowledge import ATTEMPTS, unknown
from producers.operations.processes import PATIENCE
from producers.operations.same_case import case_event_id
from producers.operations.scope_types import require_types
from producers.operations.sharing import revisable
from producers.operations.stated_before import agrees, asked, other_name
from producers.operations.stating import revision_of
from producers.operations.unreadable import Referring, warnings
from producers.publish import event_id, lifted, mismatch, publish
from producers.requests import UpdateRequest
from projections.knowledge import ask
from projections.lineage import ask as events
from projections.lineage.ask import StatedEvent

_WRITERS = {"knowledge.revised", EvolutionRequested.name}
"""What the owner states of an item, and whom the ACL lets write."""
_VERSIONS = {"knowledge.revised", "knowledge.scored"}


@dataclass(frozen=True, slots=True)
class Kept:
    """One event of a change."""

    type: str
    event_id: str
    position: int


@dataclass(frozen=True, slots=True)
class Updated:
    """Where the events of a change are kept; `position` is the last one's; `warnings` as of a save.

    `fields` says of each field of the request whether it was kept, and at which position, or why not.
    """

    id: str
    position: int
    events: list[Kept]
    fields: dict[str, JsonObject]
    warnings: list[JsonObject] = field(default_factory=list, kw_only=True)


@dataclass(frozen=True, slots=True)
class Evolving(Updated):
    """The same of a change that a model was to make as well: what came of it, `done` when nothing more will."""

    evolution: JsonObject
    done: bool


def error_body(error: LedgerError) -> JsonObject:
    """An error as every door tells it."""
    return {"code": error.code, "message": error.message, "details": error.details}


async def update(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    item_id: str,
    payload: UpdateRequest,
    retry: uuid.UUID | None = None,
    *,
    wait: float = PATIENCE,
) -> Updated:
    """Revise, score and rate one item, and ask for it to be rewritten, in one batch.

    A verdict or score is kept although what is stated beside it may not be (it is the owner's alone, there is no model,
    the item is retired); the answer's `fields` say so. Where nothing would be left, that error is raised.
    With `evolve_feedback` the answer (Evolving) waits up to `wait` seconds for the model's work.
    Raises NotAvailable (no model), IllegalState (a retired item is not rewritten), InvalidPayload, IllegalScope,
    UnknownKnowledge, NotOwner, NotReader, Forbidden, VersionConflict with `current_version`, IdempotencyMismatch,
    PayloadTooLarge, BrokerUnavailable, ViewBehind.
    """
    done, begun = await _updated(desk, caller, lineage, item_id, payload, retry)
    if payload.referred() is not None or payload.scopes is not None or payload.owner is not None:
        done = replace(done, warnings=await _warnings(desk, caller, done))
    if begun is None:
        return done
    evolution, ended = await evolutions.awaited(desk, caller, begun, wait)
    position = max(done.position, int(evolution["position"]))
    return Evolving(done.id, position, done.events, done.fields, evolution, ended, warnings=done.warnings)


async def _warnings(desk: Desk, caller: Caller, done: Updated) -> list[JsonObject]:
    """What there is to say of what the item refers to, as the change leaves it."""
    with contextlib.suppress(ViewBehind):  # the change is kept; what the view does not know yet is not judged
        await desk.view.wait_for(done.position)
    item = await desk.view.ask(ask.item, desk.org, caller, done.id)
    if item is None or not item["resource_ids"]:
        return []
    about = Referring(item["resource_ids"], readers(ask.scopes_of(item), (), item["owner"]))
    return (await warnings(desk, caller, {0: about})).get(0, [])


async def _updated(
    desk: Desk, caller: Caller, lineage: Lineage, item_id: str, payload: UpdateRequest, retry: uuid.UUID | None
) -> tuple[Updated, str | None]:
    """Where the change is kept, and the id of the evolution that it asks for, None where it asks for none."""
    said = _facts(payload, caller)
    await require_types(desk, [*(payload.scopes or ()), *filter(None, [payload.owner])])
    judging = any(fact.name not in _WRITERS for fact in said)
    refused: dict[str, LedgerError] = {}
    """By the name of the event that a field would have been."""
    if payload.evolve_feedback is not None:
        try:
            desk.models.named("evolve", payload.evolve_model)
        except NotAvailable as error:
            if not said:
                raise
            refused[EvolutionRequested.name] = error
    names = [fact.name for fact in said] + [EvolutionRequested.name] * (payload.evolve_feedback is not None)
    given_ids = [event_id(retry, name + str(number)) for number, name in enumerate(names)]
    sent = lifted(lineage, payload.add_helpful_case, payload.add_harmful_case)  # of what is no case itself
    revision = next((fact for fact in said if isinstance(fact, KnowledgeRevised)), None)
    begins = evolutions.evolution_id(given_ids[-1])
    for _ in range(ATTEMPTS):
        expects, stated_by = None, ""
        if any(name in _WRITERS and name not in refused for name in names):
            try:
                item, last, stated_by = await revisable(desk, caller, item_id, revision)
                expects = last if payload.expected_version is not None else None
            except NotOwner as error:
                if not judging:
                    raise
                refused |= {name: error for name in names if name in _WRITERS and name not in refused}
                revision = None
        if not stated_by:
            item = await _seen(desk, caller, item_id)
        if EvolutionRequested.name in set(names) - refused.keys() and item.status != "active":
            retired = IllegalState(f"{item_id} is {item.status}: only what is active is rewritten", id=item_id)
            if not said:
                raise retired
            refused[EvolutionRequested.name] = retired
        rewrites = EvolutionRequested.name in set(names) - refused.keys()
        own_ids = [own_id for name, own_id in zip(names, given_ids, strict=True) if name not in refused]
        facts = [fact for fact in said if fact.name not in refused]
        judge = _judge(caller, item, revision) if judging else None
        actors = {stated_by} if judge is None else {stated_by, judge.actor}
        same = {} if judge is None else _same_cases(desk.org, item_id, judge.actor, facts, lineage)
        ids = [same.get(number, own_id) for number, own_id in enumerate(own_ids)]
        stated = [_judged(fact, judge) for fact in facts]
        stated += _rewriting(payload, item, facts) if rewrites else []
        kept = await _before(desk, actors, list(same.values()) if retry is None else ids)
        before = {own_id: Kept(event.type, own_id, event.position) for own_id, event in kept.items()}
        if any(i in kept and not agrees(asked(fact), kept[i]) for fact, i in zip(stated, ids, strict=True)):
            raise mismatch()
        if len(before) == len(ids):
            return _updated_by(item_id, payload, ids, before, refused), kept[ids[-1]].entity_id if rewrites else None
        if retry is not None and not before.keys().isdisjoint(own_ids):  # kept together: that request said less
            raise mismatch()
        if revision is not None and payload.expected_version not in (None, item.version):
            raise VersionConflict(
                f"{item_id} is at version {item.version}, you expected {payload.expected_version}: "
                "read it again and decide anew",
                id=item_id,
                current_version=item.version,
            )
        batch = [
            NewEvent(
                fact,
                begins if isinstance(fact, EvolutionRequested) else item_id,
                stated_by if fact.name in _WRITERS or judge is None else judge.actor,
                desk.org,
                lifted(lineage, fact.case) if isinstance(fact, KnowledgeRated) else sent,
                id=own_id,
                expects=0 if isinstance(fact, EvolutionRequested) else expects if number == 0 else None,
            )
            for number, (fact, own_id) in enumerate(zip(stated, ids, strict=True))
            if own_id not in before
        ]
        try:
            done = await publish(desk.ledger, desk.tally, batch)
        except VersionConflict:
            if taken := rewrites and await _is_taken(desk, begins):
                begins = other_name(evolutions.KIND)
            if expects is None and not taken:
                raise
            continue  # a rating may have come between: the version decides, not the position
        now = {e.id: Kept(e.fact.name, e.id, d.position) for e, d in zip(batch, done, strict=True)}
        return _updated_by(item_id, payload, ids, before | now, refused), begins if rewrites else None
    raise VersionConflict(f"others keep writing to {item_id}: try again", id=item_id)


def _facts(payload: UpdateRequest, caller: Caller) -> list[Fact]:
    """What a request says, in the order it is kept: revised, scored, helpful, harmful."""
    revision = revision_of(payload, caller)
    facts: list[Fact] = [] if revision is None else [revision]
    if payload.expected_version is not None and revision is None:
        raise InvalidPayload(
            "expected_version goes with fields to state anew, and there are none: leave it out",
            errors=[{"field": "expected_version", "reason": "nothing is revised"}],
        )
    if payload.update_score is not None:
        facts.append(KnowledgeScored(score=payload.update_score, reason=payload.reason))
    if payload.add_helpful_case is not None:
        facts.append(KnowledgeRated(verdict="helpful", case=payload.add_helpful_case))
    if payload.add_harmful_case is not None:
        facts.append(KnowledgeRated(verdict="harmful", case=payload.add_harmful_case))
    if not facts and payload.evolve_feedback is None:
        raise InvalidPayload(
            "the request changes nothing: give add_helpful_case, add_harmful_case, update_score, evolve_feedback, or "
            "a field to state anew",
            errors=[],
        )
    return facts


def _rewriting(payload: UpdateRequest, item: ask.Standing, said: Sequence[Fact]) -> list[Fact]:
    """The request to have the item rewritten, as what else is said at once leaves it; none where none is asked for."""
    if payload.evolve_feedback is None:
        return []
    return [
        EvolutionRequested(
            item_id=item.id,
            base_version=item.version + sum(fact.name in _VERSIONS for fact in said),
            feedback=payload.evolve_feedback,
            apply=not payload.evolve_dry_run,
            model=payload.evolve_model,
        )
    ]


def _judge(caller: Caller, item: ask.Standing, revision: KnowledgeRevised | None) -> Judge:
    """As whom the caller judges the item, which it has to read now and as `revision`, which comes first, leaves it."""
    if judge_of(caller, readers(item.scopes, item.shared_with, item.owner)) is None:
        raise unknown(item.id)  # the operator, who reads it by its id alone
    scopes, owner = (None, None) if revision is None else (revision.scopes, revision.owner)
    judge = judge_of(caller, readers(scopes or item.scopes, item.shared_with, owner or item.owner))
    if judge is None:
        raise NotReader(
            f"you state anew who reads {item.id}, do not read it any more then, and judge it in the same request: "
            "judge it first, in a request of its own",
            id=item.id,
        )
    return judge


def _judged(fact: Fact, judge: Judge | None) -> Fact:
    """The fact with the scope through which whoever states it reads the item, where it says so."""
    return fact if judge is None or not fact.added else fact.model_copy(update={"through": judge.through})


async def _seen(desk: Desk, caller: Caller, item_id: str) -> ask.Standing:
    """An item that the caller sees, waited for when it was written a moment ago."""
    item = (await desk.view.ask(ask.standings, desk.org, caller, [item_id])).get(item_id)
    if item is None:
        last = await desk.ledger.last_position_of(desk.org, "knowledge", item_id)
        if desk.view.position < last:
            await desk.view.wait_for(last)
        item = (await desk.view.ask(ask.standings, desk.org, caller, [item_id])).get(item_id)
    if item is None or not item.visible:
        raise unknown(item_id)
    return item


def _same_cases(org: str, item_id: str, actor: str, said: Sequence[Fact], lineage: Lineage) -> dict[int, str]:
    """The event ids of the cases that count once, by the places of their facts."""
    return {
        number: own_id
        for number, fact in enumerate(said)
        if isinstance(fact, KnowledgeRated) and (own_id := case_event_id(org, item_id, actor, fact, lineage))
    }


async def _is_taken(desk: Desk, evolution: str) -> bool:
    """Whether there is an evolution of this id, or somebody says so; what was said of it is folded then."""
    last = await desk.ledger.last_position_of(desk.org, evolutions.KIND, evolution)
    if last and desk.view.position < last:
        await desk.view.wait_for(last)
    return last > 0


async def _before(desk: Desk, actors: Collection[str], ids: Sequence[str]) -> dict[str, StatedEvent]:
    """What of these was kept by an earlier try with the same key, or by the same case stated before."""
    return {} if not ids else await desk.view.ask(events.stated_events, desk.org, actors, list(ids))


def _updated_by(
    item_id: str,
    payload: UpdateRequest,
    ids: Sequence[str],
    kept: Mapping[str, Kept],
    refused: Mapping[str, LedgerError],
) -> Updated:
    """The answer of a change, in the order in which it was stated."""
    events = [kept[own_id] for own_id in ids]
    rest = iter(events)
    fields: dict[str, JsonObject] = {}
    for name, stated in _fields(payload).items():
        error = refused.get(name)
        told = [
            {"kept": True, "position": next(rest).position} if error is None else {"kept": False} | _why(error)
            for _ in (stated if name == KnowledgeRated.name else stated[:1])
        ]
        fields |= dict(zip(stated, told if len(told) > 1 else told * len(stated), strict=True))
    return Updated(item_id, max(event.position for event in events), events, fields)


def _fields(payload: UpdateRequest) -> dict[str, list[str]]:
    """The fields that a request states, by the name of the event that they become, in the order of the events."""
    named = {
        KnowledgeRevised.name: KnowledgeRevised.at_least_one,
        KnowledgeScored.name: ("update_score",),
        KnowledgeRated.name: ("add_helpful_case", "add_harmful_case"),
        EvolutionRequested.name: ("evolve_feedback",),
    }
    stated = {name: [each for each in fields if getattr(payload, each) is not None] for name, fields in named.items()}
    return {name: fields for name, fields in stated.items() if fields}


def _why(error: LedgerError) -> JsonObject:
    return {"error": error_body(error)}

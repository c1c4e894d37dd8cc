"""Feedback on one item: revise, score, rate, and request a rewrite, in one batch.

Verdicts on many items are in `knowledge/verdicts.py`. Whoever can read an item may rate and score
it as themselves, and the event records the scope through which they read it. Revising its fields is for the owner, and
for entities with write permission in the ACL.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from kledger.answers.knowledge import Changed, KeptEvent
from kledger.answers.models import Evolution
from kledger.answers.parts import Warned
from kledger.contract.errors import (
    IllegalState,
    InvalidPayload,
    LedgerError,
    NotAvailable,
    NotOwner,
    NotReader,
    UnknownKnowledge,
    VersionConflict,
    ViewBehind,
)
from kledger.contract.scopes import Caller
from kledger.contract.words import ItemStatus
from kledger.requests.knowledge import UpdateRequest
from ledger.event import Fact, Lineage, NewEvent
from ledger.events.evolution import EvolutionRequested
from ledger.events.knowledge import KnowledgeRated, KnowledgeRevised, KnowledgeScored
from ledger.readers import Judge, judge_of, readers
from producers.access.principal import require_addressable
from producers.operations.admin.scope_types import require_types
from producers.operations.desk import Desk, folded
from producers.operations.knowledge.changes import refuse_over
from producers.operations.knowledge.same_change import Before, Change, before, change, unkept
from producers.operations.knowledge.sharing import revisable
from producers.operations.knowledge.superseding import came_to_be, came_to_be_before
from producers.operations.knowledge.task_of_content import with_its_task
from producers.operations.knowledge.unknown import unknown
from producers.operations.knowledge.unreadable import Referring, warnings
from producers.operations.models import evolutions
from producers.operations.models.processes import PATIENCE
from producers.operations.outcomes import ATTEMPTS, others_write_to
from producers.operations.publish import lifted, publish
from producers.operations.reflection.asking import ask_after_verdicts
from producers.operations.stated_before import random_id
from producers.operations.stating import revision_of
from producers.operations.updated import WRITERS, updated_by
from projections.views.knowledge import ask

_VERSIONS = {"knowledge.revised", "knowledge.scored"}


async def update(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    item_id: str,
    payload: UpdateRequest,
    retry: uuid.UUID | None = None,
    *,
    wait: float = PATIENCE,
) -> Changed:
    """Revise, score and rate one item, and request a rewrite of it, in one batch.

    A verdict or score is kept even where another part is refused (only the owner may do it, there is no model, the item
    is retired); the answer's `fields` say which. Where no part would be left, the error is raised.
    A retry with the same key changes nothing: a part that was refused the first time stays refused.
    With `evolve_feedback` the answer waits up to `wait` seconds for the model.
    Raises NotAvailable (no model), IllegalState (a retired item is not rewritten), InvalidPayload, IllegalScope,
    UnknownKnowledge, NotOwner, NotReader, Forbidden, VersionConflict with `current_version`, IdempotencyMismatch,
    PayloadTooLarge, BrokerUnavailable, ViewBehind.
    """
    done, evolution_id = await _updated(desk, caller, lineage, item_id, payload, retry)
    if payload.referred() is not None or payload.scopes is not None or payload.owner is not None:
        done["warnings"] = await _warnings(desk, caller, done)
    if evolution_id is None:
        return done
    evolution, ended = await evolutions.awaited(desk, caller, evolution_id, wait)
    position = max(done["position"], int(evolution["position"]))
    return {**done, "position": position, "evolution": cast(Evolution, evolution), "done": ended}


async def _warnings(desk: Desk, caller: Caller, updated: Changed) -> list[Warned]:
    """Warnings about the resources that the item refers to after the change."""
    with contextlib.suppress(ViewBehind):  # the change is appended in any case; the warnings use what the view has
        await desk.view.wait_for(updated["position"])
    item = await desk.view.ask(ask.item, desk.org, caller, updated["id"])
    if item is None or not item["resource_ids"]:
        return []
    referring = Referring(item["resource_ids"], readers(ask.scopes_of(item), (), item["owner"]))
    return (await warnings(desk, caller, {0: referring})).get(0, [])


async def _updated(
    desk: Desk, caller: Caller, lineage: Lineage, item_id: str, payload: UpdateRequest, retry: uuid.UUID | None
) -> tuple[Changed, str | None]:
    """The answer to the change, and the id of the evolution that it requests, None where it requests none."""
    facts = _facts(payload)
    await require_types(desk, [*(payload.scopes or ()), *filter(None, [payload.owner])])
    requested = change(item_id, facts | _rewrite_request(payload, item_id), lineage, retry)
    # For the events that are no case themselves.
    request_lineage = lifted(lineage, payload.add_helpful_case, payload.add_harmful_case)
    evolution_id = evolutions.evolution_id(requested.ids["evolution"]) if "evolution" in requested.facts else ""
    for _ in range(ATTEMPTS):
        try:
            judged = await _judged(desk, caller, payload, item_id, facts)
        except (IllegalState, NotAvailable, NotOwner, NotReader, UnknownKnowledge) as error:
            if retry is None:
                raise
            earlier = await before(desk, caller, requested, [])
            left = [part for part in requested.facts if part not in earlier.kept]
            if left and not earlier.by_key:
                raise
            # The event that this key appended may be the reason why the same is refused now.
            return await _answer(desk, caller, requested, payload, earlier, dict.fromkeys(left, error))
        earlier = await before(desk, caller, requested, [] if judged.judge is None else [judged.judge.actor])
        refused = {part: error for part, error in judged.refused.items() if part not in earlier.kept}
        left = [part for part in requested.facts if part not in refused and part not in earlier.kept]
        if not left or earlier.by_key:  # a key appends all its parts at once, and nothing later
            return await _answer(desk, caller, requested, payload, earlier, refused | dict.fromkeys(left, unkept()))
        item = judged.item
        if "revised" in left and payload.expected_version not in (None, item.version):
            raise VersionConflict(
                f"{item_id} is at version {item.version}, you expected {payload.expected_version}: "
                "read it again and decide anew",
                id=item_id,
                current_version=item.version,
            )
        if "revised" in left:
            require_addressable(caller, payload.scopes or (), "what you state anew", item.scopes)
            require_addressable(caller, filter(None, [payload.owner]), "what you state anew", [item.owner])
        pending = {part: _through(requested.facts[part], judged.judge) for part in left}
        if isinstance(revision := pending.get("revised"), KnowledgeRevised):
            pending["revised"] = await with_its_task(desk, item, revision)
        if "evolution" in left:
            versions = sum(fact.name in _VERSIONS for part, fact in facts.items() if part not in refused)
            pending["evolution"] = pending["evolution"].model_copy(update={"base_version": item.version + versions})
        batch = [
            NewEvent(
                fact,
                evolution_id if isinstance(fact, EvolutionRequested) else item_id,
                judged.writer if part in WRITERS or judged.judge is None else judged.judge.actor,
                desk.org,
                lifted(lineage, fact.case) if isinstance(fact, KnowledgeRated) else request_lineage,
                id=earlier.ids[part],
                expects=0 if part == "evolution" else judged.expects if part == "revised" else None,
            )
            for part, fact in pending.items()
        ]
        try:
            appended = await publish(desk.ledger, desk.tally, batch)
        except VersionConflict:
            if taken := "evolution" in left and await folded(desk, evolutions.KIND, evolution_id) > 0:
                evolution_id = random_id(evolutions.KIND)
            if judged.expects is None and not taken:
                raise
            continue  # a rating may have come in between: the version decides, not the position
        await ask_after_verdicts(desk, caller.agent, batch)
        kept = {
            part: KeptEvent(type=event.fact.name, event_id=event.id, position=at.position)
            for part, event, at in zip(left, batch, appended, strict=True)
        }
        answer = updated_by(item_id, payload, _kept_parts(earlier) | kept, refused)
        if "revised" in left:
            _came_to_be(answer, *await came_to_be(desk, caller, lineage, item, appended))
        return answer, evolution_id if "evolution" in left else None
    raise others_write_to(item_id)


async def _answer(
    desk: Desk,
    caller: Caller,
    requested: Change,
    payload: UpdateRequest,
    earlier: Before,
    refused: Mapping[str, LedgerError],
) -> tuple[Changed, str | None]:
    """The answer to a change with no part left to append."""
    evolution, revised = earlier.kept.get("evolution"), earlier.kept.get("revised")
    done = updated_by(requested.item_id, payload, _kept_parts(earlier), refused)
    if revised is not None:
        came = await came_to_be_before(desk, caller, requested.item_id, revised.position, revised.event_id)
        _came_to_be(done, *came)
    return done, None if evolution is None else evolution.entity_id


def _came_to_be(answer: Changed, position: int, status: ItemStatus | None) -> None:
    answer["position"] = max(answer["position"], position)
    if status is not None:
        answer["status"] = status


def _kept_parts(earlier: Before) -> dict[str, KeptEvent]:
    return {
        part: KeptEvent(type=event.type, event_id=event.event_id, position=event.position)
        for part, event in earlier.kept.items()
    }


def _facts(payload: UpdateRequest) -> dict[str, Fact]:
    """The facts of a request by part, in the order they are appended, without the rewrite."""
    revision = revision_of(payload)
    facts: dict[str, Fact] = {} if revision is None else {"revised": revision}
    if payload.expected_version is not None and revision is None:
        raise InvalidPayload(
            "expected_version goes with fields to state anew, and there are none: leave it out",
            errors=[{"field": "expected_version", "reason": "nothing is revised"}],
        )
    if payload.update_score is not None:
        facts["scored"] = KnowledgeScored(score=payload.update_score, reason=payload.reason)
    if payload.add_helpful_case is not None:
        facts["helpful"] = KnowledgeRated(verdict="helpful", case=payload.add_helpful_case)
    if payload.add_harmful_case is not None:
        facts["harmful"] = KnowledgeRated(verdict="harmful", case=payload.add_harmful_case)
    if not facts and payload.evolve_feedback is None:
        raise InvalidPayload(
            "the request changes nothing: give add_helpful_case, add_harmful_case, update_score, evolve_feedback, or "
            "a field to state anew",
            errors=[],
        )
    return facts


def _rewrite_request(payload: UpdateRequest, item_id: str) -> dict[str, Fact]:
    """The request for a rewrite of the item; its base version is filled in once known."""
    if payload.evolve_feedback is None:
        return {}
    fact = EvolutionRequested(
        item_id=item_id,
        base_version=1,
        feedback=payload.evolve_feedback,
        apply=not payload.evolve_dry_run,
        model=payload.evolve_model,
    )
    return {"evolution": fact}


@dataclass(frozen=True, slots=True)
class _Judged:
    """The current item, the actors for each part of a change, and the refused parts."""

    item: ask.Standing
    writer: str
    expects: int | None
    judge: Judge | None
    refused: dict[str, LedgerError]


async def _judged(
    desk: Desk, caller: Caller, payload: UpdateRequest, item_id: str, facts: Mapping[str, Fact]
) -> _Judged:
    """Judge a change on the current item. Raises an error that refuses all of it."""
    judging = any(part not in WRITERS for part in facts)
    revision = next((fact for fact in facts.values() if isinstance(fact, KnowledgeRevised)), None)
    rewrites = payload.evolve_feedback is not None
    refused: dict[str, LedgerError] = {}
    if rewrites:
        try:
            desk.models.named("evolve", payload.evolve_model)
        except NotAvailable as error:
            if not facts:
                raise
            refused["evolution"] = error
    writes = [part for part, present in zip(WRITERS, (revision, rewrites), strict=True) if present]
    item: ask.Standing | None = None
    writer, expects = "", None
    if writes := [part for part in writes if part not in refused]:
        try:
            item, last, writer = await revisable(desk, caller, item_id, revision)
            expects = last if payload.expected_version is not None else None
        except NotOwner as error:
            if not judging:
                raise
            refused |= dict.fromkeys(writes, error)
            revision = None
    if item is None:
        item = await _seen(desk, caller, item_id)
    if rewrites and "evolution" not in refused and item.status != "active":
        refused["evolution"] = IllegalState(f"{item_id} is {item.status}: only what is active is rewritten", id=item_id)
        if not facts:
            raise refused["evolution"]
    anew = [part for part in ("revised", "scored", "evolution") if part in facts or (rewrites and part == "evolution")]
    if left := [part for part in anew if part not in refused]:
        try:
            await refuse_over(desk, item)
        except IllegalState as error:
            if not any(part not in anew for part in facts):
                raise
            refused |= dict.fromkeys(left, error)
            revision = None
    return _Judged(item, writer, expects, _judge(caller, item, revision) if judging else None, refused)


def _judge(caller: Caller, item: ask.Standing, revision: KnowledgeRevised | None) -> Judge:
    """The judge of the item: the caller has to read it now and also after `revision`, which is applied first."""
    if judge_of(caller, readers(item.scopes, item.shared_with, item.owner)) is None:
        raise unknown(item.id)  # the operator reads it by its id alone, and cannot judge it
    scopes, owner = (None, None) if revision is None else (revision.scopes, revision.owner)
    judge = judge_of(caller, readers(scopes or item.scopes, item.shared_with, owner or item.owner))
    if judge is None:
        raise NotReader(
            f"you state anew who reads {item.id}, do not read it any more then, and judge it in the same request: "
            "judge it first, in a request of its own",
            id=item.id,
        )
    return judge


def _through(fact: Fact, judge: Judge | None) -> Fact:
    """The fact with the scope through which its actor reads the item, where it has such a field."""
    return fact if judge is None or not fact.added else fact.model_copy(update={"through": judge.through})


async def _seen(desk: Desk, caller: Caller, item_id: str) -> ask.Standing:
    """An item visible to the caller; waits for it where it was written a moment ago."""
    item = await desk.view.ask(ask.standing, desk.org, caller, item_id)
    if item is None:
        await folded(desk, "knowledge", item_id)
        item = await desk.view.ask(ask.standing, desk.org, caller, item_id)
    if item is None or not item.visible:
        raise unknown(item_id)
    return item

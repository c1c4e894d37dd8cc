"""Feedback on one item: revise, score, rate, and request a rewrite, in one batch.

Verdicts on many items are in `knowledge/verdicts.py`. Whoever can read an item may rate and score
it as themselves, and the event records the scope through which they read it. Revising its fields is for the owner, and
for entities with write permission in the ACL.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Mapping
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
from ledger.readers import readers
from producers.access.principal import require_addressable
from producers.operations.admin.scope_types import require_types
from producers.operations.desk import Desk, folded
from producers.operations.judged import refused_meanwhile
from producers.operations.knowledge.changes import refuse_other_version
from producers.operations.knowledge.permitted import Permitted, permitted
from producers.operations.knowledge.same_change import Before, Change, before, change, unkept
from producers.operations.knowledge.superseding import came_to_be, came_to_be_before
from producers.operations.knowledge.task_of_content import with_its_task
from producers.operations.knowledge.unreadable import Referring, warnings
from producers.operations.models import evolutions
from producers.operations.models.processes import PATIENCE
from producers.operations.outcomes import ATTEMPTS, others_write_to
from producers.operations.publish import lifted, publish
from producers.operations.reflection.asking import ask_after_verdicts
from producers.operations.stated_before import random_id
from producers.operations.stating import revision_of
from producers.operations.updated import updated_by
from projections.views.knowledge import ask
from projections.views.knowledge.memories import words_of

_VERSIONS = ("revised", "scored")
"""Parts that make the next version of the item."""


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
    requested = change(item_id, _facts(payload, item_id), lineage, retry)
    await require_types(desk, [*(payload.scopes or ()), *filter(None, [payload.owner])])
    evolution_id = evolutions.evolution_id(requested.ids["evolution"]) if "evolution" in requested.facts else ""
    for _ in range(ATTEMPTS):
        seen = desk.view.position
        try:
            may = await permitted(desk, caller, item_id, requested.facts)
        except (IllegalState, NotAvailable, NotOwner, NotReader, UnknownKnowledge) as error:
            return await _refused_now(desk, caller, requested, payload, error)
        earlier = await before(desk, caller, requested, [] if may.judge is None else [may.judge.actor])
        refused = {part: error for part, error in may.refused.items() if part not in earlier.kept}
        left = [part for part in requested.facts if part not in refused and part not in earlier.kept]
        if not left or earlier.by_key:  # a key appends all its parts at once, and nothing later
            return await _answer(desk, caller, requested, payload, earlier, refused | dict.fromkeys(left, unkept()))
        if "revised" in left:
            _check_revision(caller, payload, may.item)
            await _refuse_no_tags(desk, payload, may.item)
        version_matters = "revised" in left and payload.expected_version is not None
        entity_ids = {"evolution": evolution_id}
        expects = {"evolution": 0, "revised": may.last if version_matters else None}
        facts = await _completed(desk, may, {part: requested.facts[part] for part in left})
        batch = [
            NewEvent(
                fact,
                entity_ids.get(part, item_id),
                may.actor_of(part),
                desk.org,
                _lineage_of(fact, payload, lineage),
                id=earlier.ids[part],
                expects=expects.get(part),
            )
            for part, fact in facts.items()
        ]
        try:
            appended = await publish(desk.ledger, desk.tally, batch)
        except VersionConflict:
            if "evolution" in left and await folded(desk, evolutions.KIND, evolution_id) > 0:
                evolution_id = random_id(evolutions.KIND)  # the derived one is taken
            elif not version_matters:
                raise
            continue  # a rating may have come in between: the version decides, not the position
        kept = {
            part: KeptEvent(type=event.fact.name, event_id=event.id, position=at.position)
            for part, event, at in zip(facts, batch, appended, strict=True)
        }
        errors = await _refused_meanwhile(desk, caller, requested.facts, may.item, seen, kept)
        kept = {part: each for part, each in kept.items() if part not in errors}
        refused |= errors
        if errors and not kept and not earlier.kept:
            raise next(iter(errors.values()))
        await ask_after_verdicts(
            desk, caller.agent, [event for part, event in zip(facts, batch, strict=True) if part in kept]
        )
        answer = updated_by(item_id, payload, _kept_parts(earlier) | kept, refused)
        if "revised" in kept:
            _came_to_be(answer, *await came_to_be(desk, caller, lineage, may.item, appended))
        return answer, evolution_id if "evolution" in kept else None
    raise others_write_to(item_id)


def _check_revision(caller: Caller, payload: UpdateRequest, item: ask.Standing) -> None:
    """Raise VersionConflict where the caller knows another version, Forbidden where they may not name a reader."""
    refuse_other_version(item, payload.expected_version)
    require_addressable(caller, payload.scopes or (), "what you state anew", item.scopes)
    require_addressable(caller, filter(None, [payload.owner]), "what you state anew", [item.owner])


async def _refuse_no_tags(desk: Desk, payload: UpdateRequest, item: ask.Standing) -> None:
    """Raise InvalidPayload where a memory would have its first words again, and is to have no tags."""
    if payload.tags is None or payload.tags:
        return
    words: list[str] = await desk.view.ask(words_of, desk.org, item.id, item.version)
    if words:
        reason = "are empty, which a memory's are not that was saved with words: state the ones that hold"
        raise InvalidPayload(f"tags of {item.id} {reason}", errors=[{"field": "tags", "reason": reason}])


async def _completed(desk: Desk, may: Permitted, facts: Mapping[str, Fact]) -> dict[str, Fact]:
    """The facts to append, with what follows from the item and its actors as they are now."""
    completed = {part: may.as_stated(fact) for part, fact in facts.items()}
    if isinstance(revision := completed.get("revised"), KnowledgeRevised):
        completed["revised"] = await with_its_task(desk, may.item, revision)
    if rewrite := completed.get("evolution"):
        versions = sum(part in _VERSIONS for part in facts)
        completed["evolution"] = rewrite.model_copy(update={"base_version": may.item.version + versions})
    return completed


def _lineage_of(fact: Fact, payload: UpdateRequest, lineage: Lineage) -> Lineage:
    """The lineage of an event: that of its own case, or of the request's where it has none."""
    if isinstance(fact, KnowledgeRated):
        return lifted(lineage, fact.case)
    return lifted(lineage, payload.add_helpful_case, payload.add_harmful_case)


async def _refused_now(
    desk: Desk, caller: Caller, requested: Change, payload: UpdateRequest, error: LedgerError
) -> tuple[Changed, str | None]:
    """The answer to a change that is refused as the item is now: raises the error unless its key was in time.

    The event that this key appended may be the reason why the same is refused now.
    """
    if requested.retry is None:
        raise error
    earlier = await before(desk, caller, requested, [])
    left = [part for part in requested.facts if part not in earlier.kept]
    if left and not earlier.by_key:
        raise error
    return await _answer(desk, caller, requested, payload, earlier, dict.fromkeys(left, error))


async def _refused_meanwhile(
    desk: Desk, caller: Caller, facts: Mapping[str, Fact], item: ask.Standing, seen: int, kept: Mapping[str, KeptEvent]
) -> dict[str, LedgerError]:
    """The parts of a change that the gate refused, as others changed the item after it was looked at.

    The error is the one that the change gets now: what the gate says may tell of an item that is closed to the caller.
    """
    of_item = {each["position"]: part for part, each in kept.items() if part != "evolution"}
    if not of_item:
        return {}
    refused = await refused_meanwhile(desk, item, seen, list(of_item))
    errors = {of_item[position]: error for position, error in refused.items()}
    if not errors:
        return {}
    try:
        may = await permitted(desk, caller, item.id, facts)
    except (IllegalState, NotAvailable, NotOwner, NotReader, UnknownKnowledge) as error:
        return dict.fromkeys(errors, error)
    return errors | {part: error for part, error in may.refused.items() if part in errors}


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


def _facts(payload: UpdateRequest, item_id: str) -> dict[str, Fact]:
    """The facts of a request by part, in the order they are appended."""
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
    if payload.evolve_feedback is not None:
        facts["evolution"] = EvolutionRequested(
            item_id=item_id,
            base_version=1,  # as it is known where the event is made
            feedback=payload.evolve_feedback,
            apply=not payload.evolve_dry_run,
            model=payload.evolve_model,
        )
    if not facts:
        raise InvalidPayload(
            "the request changes nothing: give add_helpful_case, add_harmful_case, update_score, evolve_feedback, or "
            "a field to state anew",
            errors=[],
        )
    return facts

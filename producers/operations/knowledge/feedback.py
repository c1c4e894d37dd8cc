"""How is an item judged and bettered? PUT /api/knowledge/{id} (mission K3, K10); many verdicts: verdicts.py.

Whoever reads an item may rate and score it, as themselves, and states the scope through which they read it; stating its
fields anew is its owner's, and theirs whom the ACL lets write.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace

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
from ledger.event import Fact, JsonObject, Lineage, NewEvent
from ledger.events.evolution import EvolutionRequested
from ledger.events.knowledge import KnowledgeRated, KnowledgeRevised, KnowledgeScored
from ledger.readers import Judge, judge_of, readers
from producers.operations.admin.scope_types import require_types
from producers.operations.desk import Desk
from producers.operations.knowledge.changes import ATTEMPTS, unknown
from producers.operations.knowledge.same_change import Before, Change, before, change, unkept
from producers.operations.knowledge.sharing import revisable
from producers.operations.knowledge.stating import revision_of
from producers.operations.knowledge.unreadable import Referring, warnings
from producers.operations.knowledge.updated import WRITERS, Evolving, Kept, Updated, updated_by
from producers.operations.models import evolutions
from producers.operations.models.processes import PATIENCE
from producers.operations.publish import lifted, publish
from producers.operations.stated_before import other_name
from producers.requests.knowledge import UpdateRequest
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
) -> Updated:
    """Revise, score and rate one item, and ask for it to be rewritten, in one batch.

    A verdict or score is kept although what is stated beside it may not be (it is the owner's alone, there is no model,
    the item is retired); the answer's `fields` say so. Where nothing would be left, that error is raised.
    What came before with the same key is kept as it was then: a part that was not kept, and may be now, stays so.
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
    facts = _facts(payload, caller)
    await require_types(desk, [*(payload.scopes or ()), *filter(None, [payload.owner])])
    asked = change(item_id, facts | _rewriting(payload, item_id), lineage, retry)
    sent = lifted(lineage, payload.add_helpful_case, payload.add_harmful_case)  # of what is no case itself
    begins = evolutions.evolution_id(asked.ids["evolution"]) if "evolution" in asked.said else ""
    for _ in range(ATTEMPTS):
        try:
            judged = await _judged(desk, caller, payload, item_id, facts)
        except (IllegalState, NotAvailable, NotOwner, NotReader, UnknownKnowledge) as error:
            if retry is None:
                raise
            found = await before(desk, caller, asked, [])
            left = [part for part in asked.said if part not in found.kept]
            if left and not found.by_key:
                raise
            # What was kept under this key may be why it may not be said now.
            return _answer(asked, payload, found, dict.fromkeys(left, error))
        found = await before(desk, caller, asked, [] if judged.judge is None else [judged.judge.actor])
        refused = {part: error for part, error in judged.refused.items() if part not in found.kept}
        left = [part for part in asked.said if part not in refused and part not in found.kept]
        if not left or found.by_key:  # all that a key states is kept at once, and nothing more with it later
            return _answer(asked, payload, found, refused | dict.fromkeys(left, unkept()))
        item = judged.item
        if "revised" in left and payload.expected_version not in (None, item.version):
            raise VersionConflict(
                f"{item_id} is at version {item.version}, you expected {payload.expected_version}: "
                "read it again and decide anew",
                id=item_id,
                current_version=item.version,
            )
        stated = {part: _through(asked.said[part], judged.judge) for part in left}
        if "evolution" in left:
            versions = sum(fact.name in _VERSIONS for part, fact in facts.items() if part not in refused)
            stated["evolution"] = stated["evolution"].model_copy(update={"base_version": item.version + versions})
        batch = [
            NewEvent(
                fact,
                begins if isinstance(fact, EvolutionRequested) else item_id,
                judged.stated_by if part in WRITERS or judged.judge is None else judged.judge.actor,
                desk.org,
                lifted(lineage, fact.case) if isinstance(fact, KnowledgeRated) else sent,
                id=found.ids[part],
                expects=0 if part == "evolution" else judged.expects if part == "revised" else None,
            )
            for part, fact in stated.items()
        ]
        try:
            done_now = await publish(desk.ledger, desk.tally, batch)
        except VersionConflict:
            if taken := "evolution" in left and await _is_taken(desk, begins):
                begins = other_name(evolutions.KIND)
            if judged.expects is None and not taken:
                raise
            continue  # a rating may have come between: the version decides, not the position
        now = {part: Kept(e.fact.name, e.id, d.position) for part, e, d in zip(left, batch, done_now, strict=True)}
        return updated_by(item_id, payload, _kept(found) | now, refused), begins if "evolution" in left else None
    raise VersionConflict(f"others keep writing to {item_id}: try again", id=item_id)


def _answer(
    asked: Change, payload: UpdateRequest, found: Before, refused: Mapping[str, LedgerError]
) -> tuple[Updated, str | None]:
    """The answer to a change of which nothing is left to keep."""
    evolution = found.kept.get("evolution")
    done = updated_by(asked.item_id, payload, _kept(found), refused)
    return done, None if evolution is None else evolution.entity_id


def _kept(found: Before) -> dict[str, Kept]:
    return {part: Kept(event.type, event.event_id, event.position) for part, event in found.kept.items()}


def _facts(payload: UpdateRequest, caller: Caller) -> dict[str, Fact]:
    """What a request says of the item as it is, by part, in the order it is kept."""
    revision = revision_of(payload, caller)
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


def _rewriting(payload: UpdateRequest, item_id: str) -> dict[str, Fact]:
    """The request to have the item rewritten; which version of it is stated once that is known."""
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
    """An item as it stands, who may state what of it, and which parts of a change are refused."""

    item: ask.Standing
    stated_by: str
    expects: int | None
    judge: Judge | None
    refused: dict[str, LedgerError]


async def _judged(
    desk: Desk, caller: Caller, payload: UpdateRequest, item_id: str, facts: Mapping[str, Fact]
) -> _Judged:
    """Judge a change on the item as it stands. Raises what leaves nothing of it."""
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
    written = [part for part, is_there in zip(WRITERS, (revision, rewrites), strict=True) if is_there]
    item: ask.Standing | None = None
    stated_by, expects = "", None
    if written := [part for part in written if part not in refused]:
        try:
            item, last, stated_by = await revisable(desk, caller, item_id, revision)
            expects = last if payload.expected_version is not None else None
        except NotOwner as error:
            if not judging:
                raise
            refused |= dict.fromkeys(written, error)
            revision = None
    if item is None:
        item = await _seen(desk, caller, item_id)
    if rewrites and "evolution" not in refused and item.status != "active":
        refused["evolution"] = IllegalState(f"{item_id} is {item.status}: only what is active is rewritten", id=item_id)
        if not facts:
            raise refused["evolution"]
    return _Judged(item, stated_by, expects, _judge(caller, item, revision) if judging else None, refused)


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


def _through(fact: Fact, judge: Judge | None) -> Fact:
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


async def _is_taken(desk: Desk, evolution: str) -> bool:
    """Whether there is an evolution of this id, or somebody says so; what was said of it is folded then."""
    last = await desk.ledger.last_position_of(desk.org, evolutions.KIND, evolution)
    if last and desk.view.position < last:
        await desk.view.wait_for(last)
    return last > 0

"""Asking extraction after what is worth reflecting on: a finished task, a verdict. Off unless it is switched on.

KLEDGER_EXTRACT_AFTER names what asks: `task`, `verdict`, both with a comma, or nothing (the default). Each request is
a model's work that nobody asked for by hand, so a model alone does not switch it on.

The log gets the ids of the verdicts and no word of them: the reactor reads those where they stand, while they are not
erased. The ids of the requests follow from the verdicts, so a verdict that is sent again is one request.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from typing import get_args

import structlog

from kledger.contract.bounds import is_blank
from kledger.contract.errors import InvalidPayload, LedgerError, VersionConflict
from ledger.event import Lineage, NewEvent
from ledger.events.extraction import ExtractionRequested
from ledger.events.knowledge import KnowledgeRated
from ledger.named_ids import named_id
from producers.operations.available_models import Reflected, is_set
from producers.operations.desk import Desk
from producers.operations.publish import publish

log = structlog.get_logger(__name__)

VARIABLE = "KLEDGER_EXTRACT_AFTER"
SLICE = 100
"""Verdicts of one request, which is one prompt."""
MOST_ASKED = 1_000
"""So many of the last verdicts of one batch, at most."""
_NAMESPACE = uuid.UUID("0d7a4a0e-30a5-5e0d-9a55-7c1f7a3b9d42")


def reflected_from_environment() -> frozenset[Reflected]:
    """After what this node asks extraction by itself. Raises InvalidPayload for any other word."""
    words = {word.strip().lower() for word in os.environ.get(VARIABLE, "").split(",")} - {""}
    if unknown := sorted(words.difference(get_args(Reflected))):
        raise InvalidPayload(
            f"{VARIABLE} has {unknown[0][:40]!r}: write task, verdict, both with a comma, or nothing",
            errors=[{"field": VARIABLE, "reason": "is not task or verdict"}],
        )
    return frozenset(known for known in get_args(Reflected) if known in words)


def reflects_on(desk: Desk, what: Reflected) -> bool:
    """Whether extraction is asked after this, and a model is set for it."""
    return what in desk.reflected and is_set(desk.models, "extract")


async def ask_after_verdicts(desk: Desk, agent: str | None, events: Sequence[NewEvent]) -> None:
    """Ask extraction about the verdicts among these events that say what came of an item, or why.

    `agent` is named in the source of what is found. Raises nothing of ours: no verdict fails for it.
    """
    if not reflects_on(desk, "verdict"):
        return
    by_actor: dict[str, list[NewEvent]] = {}
    for event in [each for each in events if _teaches(each)][-MOST_ASKED:]:
        by_actor.setdefault(event.actor, []).append(event)
    for actor, verdicts in by_actor.items():
        for at in range(0, len(verdicts), SLICE):
            await _ask(desk, actor, agent, verdicts[at : at + SLICE])


async def _ask(desk: Desk, actor: str, agent: str | None, verdicts: Sequence[NewEvent]) -> None:
    first, role = verdicts[0], "user" if actor.startswith("user:") else "assistant"
    fact = ExtractionRequested(
        kind="feedback",
        messages=[
            {"id": each.lineage.message_id or each.id, "role": role, "verdict": each.id, "about": each.entity_id}
            for each in verdicts
        ],
        owner=actor,
        scopes=[actor],
        agent_id=agent,
    )
    own_id = named_id(_NAMESPACE, "\n".join((desk.org, first.id, verdicts[-1].id)))
    lineage = Lineage(first.lineage.trace_id, first.lineage.message_id, causation_id=first.id)
    try:
        await ask_once(desk, fact, actor, lineage, own_id)
    except LedgerError as error:
        log.warning("extraction is not asked after a verdict", code=error.code)


async def ask_once(desk: Desk, fact: ExtractionRequested, actor: str, lineage: Lineage, own_id: str) -> None:
    """Ask extraction under an id that follows from what it is about: asked before, it is not asked again.

    Raises BrokerUnavailable, PayloadTooLarge, SubjectForgotten, …
    """
    name = f"extraction-{uuid.UUID(own_id).hex[:16]}"
    try:
        await publish(desk.ledger, desk.tally, [NewEvent(fact, name, actor, desk.org, lineage, id=own_id, expects=0)])
    except VersionConflict:
        log.debug("extraction was asked before", extraction=name)


def _teaches(event: NewEvent) -> bool:
    """Whether it is a verdict that says what came of an item, or why: that it helped is no lesson by itself."""
    fact = event.fact
    said = (fact.case.outcome, fact.case.reason) if isinstance(fact, KnowledgeRated) else ()
    return any(not is_blank(text or "") for text in said)

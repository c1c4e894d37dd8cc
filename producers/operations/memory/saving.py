"""Saving of memories: a memory is an item with a layer, saved as every item is."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from difflib import get_close_matches

from kledger.answers.memory import Remembered
from kledger.contract.errors import IdempotencyMismatch, InvalidPayload, KnowledgeExists
from kledger.contract.projects import SHARED_KINDS, is_shared_kind, scope_of
from kledger.contract.scopes import Caller
from kledger.requests.knowledge import EvalBody, MemoryBody, SaveRequest
from kledger.requests.memory import RememberRequest
from ledger.event import Lineage
from producers.operations.desk import Desk
from producers.operations.knowledge import saving
from producers.operations.lifetimes import lifetime_of
from producers.operations.publish import event_id
from producers.operations.stated_before import possible_actors
from producers.operations.stating import saved_fact
from projections.views.knowledge import ask
from projections.views.lineage.ask import stated_events

_NEAR = 0.75
"""How much of two words has to be the same: a letter that is wrong, missing or elsewhere."""


async def remember(
    desk: Desk, caller: Caller, lineage: Lineage, payload: RememberRequest, retry: uuid.UUID | None = None
) -> Remembered:
    """Save a memory. Raises InvalidPayload (a short memory without a lifetime), and what saving an item raises."""
    try:
        request = as_item(payload, desk.lifetimes, caller)
        saved = await saving.save(desk, caller, lineage, request, retry)
    except (InvalidPayload, IdempotencyMismatch, KnowledgeExists):
        if (before := await _lifetime_before(desk, caller, payload, retry)) is None:
            raise
        request = as_item(payload, {**desk.lifetimes, **before}, caller)
        saved = await saving.save(desk, caller, lineage, request, retry)
    assert request.memory is not None
    hints = _nearly(payload.kind, desk.lifetimes)
    return Remembered(**saved, layer=request.memory.layer, ignored=payload.read_over(), hints=hints)


async def _lifetime_before(
    desk: Desk, caller: Caller, payload: RememberRequest, retry: uuid.UUID | None
) -> dict[str, int] | None:
    """The lifetime of the kind that an earlier request with this key, or this id, was kept with.

    It is the node's and no part of the request: of a node with another setting the same request is the same one. None
    where the request states its own, where nothing was kept, and where it was kept with this node's.
    """
    kind, stated = payload.kind, payload.fields()
    if kind is None or stated["layer"] != "short" or "lifetime" in stated:
        return None
    own_id = None if retry is None else event_id(retry)
    owner = saved_fact(as_item(payload, {kind: 1}, caller), caller).owner
    if own_id is None and payload.id is not None:
        taken = (await desk.view.ask(ask.saved_statements, desk.org, [payload.id])).get(payload.id)
        own_id = None if taken is None else taken.event_id
    if own_id is None:
        return None
    kept = await desk.view.ask(stated_events, desk.org, possible_actors(caller, owner), [own_id])
    memory = kept[own_id].data.get("memory") if own_id in kept else None
    lifetime = memory.get("lifetime") if isinstance(memory, dict) else None
    return {kind: lifetime} if isinstance(lifetime, int) and lifetime != desk.lifetimes.get(kind) else None


def as_item(payload: RememberRequest, lifetimes: Mapping[str, int], caller: Caller) -> SaveRequest:
    """The save of an item that a memory is; what projects share belongs to the caller's. Raises InvalidPayload."""
    stated = payload.fields()
    if stated["layer"] == "short" and "lifetime" not in stated:
        stated["lifetime"] = lifetime_of(payload.kind, lifetimes)
    task, content = payload.words()
    return SaveRequest.model_validate(
        {
            "id": payload.id,
            "types": payload.types or [payload.kind or stated["layer"]],
            "task": task,
            "content": content,
            "tags": payload.tags if isinstance(payload.tags, dict) else None,
            "memory": MemoryBody(**stated),
            "score": payload.score,
            "eval": None if payload.confidence is None else EvalBody(confidence=payload.confidence),
            "scopes": payload.scopes or _of_their_project(payload.kind, caller),
            **{name: getattr(payload, name) for name in _SAME_AS_IN_A_SAVE},
        }
    )


def _nearly(kind: str | None, lifetimes: Mapping[str, int]) -> list[str]:
    """A hint at a kind that is nearly one with a meaning: any word is a kind, so nothing refuses a misspelling."""
    known = (*SHARED_KINDS, *lifetimes)
    near = [] if kind is None or kind in known else get_close_matches(kind, known, 1, _NEAR)
    if not near:
        return []
    meaning = "a project approves it" if is_shared_kind(near[0]) else "it says how long a short memory lives"
    return [f"the kind {kind!r} is kept as a word of its own: {near[0]!r} may be meant, of which {meaning}"]


def _of_their_project(kind: str | None, caller: Caller) -> list[str] | None:
    return [scope_of(caller.project)] if is_shared_kind(kind) and caller.project is not None else None


_SAME_AS_IN_A_SAVE = (
    *("owner", "acl", "source", "message_id", "trace_id", "supersedes"),
    *("resource_ids", "resource_id", "secure_resource_id"),
)

"""Saving of memories: a memory is an item with a layer, saved as every item is."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from difflib import get_close_matches

from kledger.answers.memory import Remembered
from kledger.contract.projects import SHARED_KINDS, is_shared_kind, scope_of
from kledger.contract.scopes import Caller
from kledger.requests.knowledge import EvalBody, MemoryBody, SaveRequest
from kledger.requests.memory import RememberRequest
from ledger.event import Lineage
from producers.operations.desk import Desk
from producers.operations.knowledge import saving
from producers.operations.lifetimes import lifetime_of

_NEAR = 0.75
"""How much of two words has to be the same: a letter that is wrong, missing or elsewhere."""


async def remember(
    desk: Desk, caller: Caller, lineage: Lineage, payload: RememberRequest, retry: uuid.UUID | None = None
) -> Remembered:
    """Save a memory. Raises InvalidPayload (a short memory without a lifetime), and what saving an item raises."""
    request = as_item(payload, desk.lifetimes, caller)
    saved = await saving.save(desk, caller, lineage, request, retry)
    assert request.memory is not None
    hints = _nearly(payload.kind, desk.lifetimes)
    return Remembered(**saved, layer=request.memory.layer, ignored=payload.read_over(), hints=hints)


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

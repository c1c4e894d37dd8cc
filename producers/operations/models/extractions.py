"""Extractions: requests to a model to find knowledge in messages, and their outcome."""

from __future__ import annotations

import uuid

from kledger.contract.scopes import Caller
from kledger.requests.models import ExtractRequest, MessageBody
from ledger.event import JsonObject, Lineage, NewEvent
from ledger.events.extraction import ExtractionRequested
from producers.access.principal import require_addressable
from producers.operations.desk import Desk
from producers.operations.models.processes import PATIENCE, settled
from producers.operations.publish import event_id
from producers.operations.stated_before import begun
from producers.operations.stating import default_owner, not_owner
from projections.views.processes.ask import Process

KIND = "extraction"


def shown(process: Process) -> JsonObject:
    """An extraction as JSON for every interface, without the text of the messages."""
    request, completed = process.requested, process.said.get("completed", {})
    failed = process.said.get("failed", {})
    return {
        **process.shown(),
        "kind": request["kind"],
        "scopes": request["scopes"],
        "messages": len(request["messages"]),
        "items": completed.get("items", []),
        "reason": failed.get("reason"),
        "code": failed.get("code"),
        "usage": completed.get("usage") or failed.get("usage"),
    }


async def extract(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    payload: ExtractRequest,
    retry: uuid.UUID | None = None,
    *,
    wait: float = PATIENCE,
) -> tuple[JsonObject, bool]:
    """Request an extraction; the extraction once it is done, or as it is after `wait` seconds.

    The second value says which of the two. Raises NotAvailable (no model), NotOwner, Forbidden, InvalidPayload,
    IdempotencyMismatch, PayloadTooLarge, BrokerUnavailable, ViewBehind.
    """
    desk.models.named("extract", payload.model)
    owner = payload.owner or default_owner(caller, None)
    if not caller.may_act_for(owner):
        raise not_owner(f"have knowledge found for {owner}", owner, caller)
    scopes = list(dict.fromkeys(payload.scopes or [owner, *_context_scopes(caller)]))
    require_addressable(caller, scopes, "what is found")
    own_id = event_id(retry)
    messages = payload.messages or [MessageBody(id=lineage.message_id, content=payload.text or "")]

    def event(name: str) -> NewEvent:
        fact = ExtractionRequested(
            kind=payload.kind,
            messages=[
                {"id": f"{name}:{number}", **message.model_dump(exclude_none=True)}
                for number, message in enumerate(messages)
                if message.content
            ],
            owner=owner,
            scopes=scopes,
            model=payload.model,
            agent_id=caller.agent,
        )
        return NewEvent(fact, name, owner, desk.org, lineage, id=own_id, expects=0)

    extraction = await begun(desk, caller, KIND, own_id, event, retry)

    async def is_settled(process: Process) -> bool:
        return process.status in ("completed", "failed")

    outcome, done = await settled(desk, caller, KIND, extraction, is_settled, wait)
    return shown(outcome), done


def _context_scopes(caller: Caller) -> list[str]:
    """Default scopes of what is found: user, agent and project of the context."""
    return Caller(user=caller.user, agent=caller.agent, project=caller.project).entities()

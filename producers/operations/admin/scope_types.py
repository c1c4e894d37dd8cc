"""Scope types: which types of scopes may be used, and their registration by the operator.

The log takes any word as a type, so that a new type needs no new version of every event. The interfaces accept the
built-in types and the registered ones alone: a scope that nobody can have would hide what is saved with it.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from kledger.answers.sharing import RegisteredScopeType
from kledger.contract.errors import IllegalScope, InvalidPayload
from kledger.contract.scopes import PRIORITY, Caller, further_types
from kledger.requests.knowledge import ScopeTypeRequest
from ledger.event import JsonObject, Lineage, NewEvent
from ledger.events.scope_type import ScopeTypeRegistered
from ledger.privacy.personal import NOBODY
from producers.operations.admin.jobs import require_operator
from producers.operations.desk import ANY, Desk, Freshness, folded, reach
from producers.operations.publish import event_id, publish
from producers.operations.stated_before import earlier_event, request_fields
from producers.requests.reading import in_details, some_of
from projections.views.scope_types import ask


async def require_types(desk: Desk, scopes: Iterable[str]) -> None:
    """Raise IllegalScope, naming the registered types, when one of these scopes is of an unregistered type.

    Built-in types need no query. Raises ViewBehind.
    """
    requested = further_types(scopes)
    if not requested:
        return
    known = await desk.view.ask(ask.registered, desk.org)
    if missing := sorted(requested - known.keys()):
        for kind in missing:  # it may have been registered a moment ago
            await folded(desk, "scope_type", kind)
        known = await desk.view.ask(ask.registered, desk.org)
    if missing := sorted(requested - known.keys()):
        allowed = ", ".join([*PRIORITY, *sorted(known)])
        raise IllegalScope(
            f"{some_of(missing)} is no type of scope here; there are {allowed}: correct it, or have the operator "
            "register it (POST /api/scope_types, kledger scope-type add)",
            **in_details([{"field": kind, "reason": "is not registered"} for kind in missing], len(missing)),
        )


async def register(
    desk: Desk, caller: Caller, lineage: Lineage, payload: ScopeTypeRequest, retry: uuid.UUID | None = None
) -> RegisteredScopeType:
    """Register a scope type, or change its priority.

    Raises NotOwner (not the operator), InvalidPayload (a built-in one), BrokerUnavailable.
    """
    require_operator(caller)
    if payload.type in PRIORITY:
        raise InvalidPayload(
            f"{payload.type} is built in and keeps its priority {PRIORITY[payload.type]}: register another type",
            errors=[{"field": "type", "reason": "is built in"}],
        )
    fact = ScopeTypeRegistered(type=payload.type, priority=payload.priority)
    own_id = event_id(retry)

    def registered(position: int) -> RegisteredScopeType:
        return RegisteredScopeType(type=payload.type, priority=payload.priority, position=position, event_id=own_id)

    if retry is not None and (before := await earlier_event(desk, [NOBODY], own_id, request_fields(fact))) is not None:
        return registered(before.position)
    event = NewEvent(fact, payload.type, NOBODY, desk.org, lineage, id=own_id)
    (appended,) = await publish(desk.ledger, desk.tally, [event])
    return registered(appended.position)


async def listed(desk: Desk, *, freshness: Freshness = ANY) -> JsonObject:
    """The built-in types and the registered ones (ScopeTypes), the most specific first. Raises ViewBehind."""
    await reach(desk, freshness)
    position = desk.view.position
    known = await desk.view.ask(ask.registered, desk.org)
    rows: list[JsonObject] = [
        {"type": kind, "priority": float(priority), "built_in": True, "position": None}
        for kind, priority in PRIORITY.items()
    ]
    rows += [
        {"type": each.type, "priority": each.priority, "built_in": False, "position": each.position}
        for each in known.values()
    ]
    rows.sort(key=lambda each: (-each["priority"], each["type"]))
    return {"scope_types": rows, "position": position}

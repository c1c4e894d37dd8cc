"""Save events of resources, judged on the current state before anything is appended.

A secret is sealed here, before it enters an event, and is opened by producers/operations/resources/reading.py alone.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from kledger.contract.errors import IllegalState, LedgerError, NotAvailable, NotOwner, VersionConflict
from kledger.contract.scopes import Caller
from kledger.requests.resources import ResourceRequest
from ledger.event import Lineage, NewEvent
from ledger.events.knowledge import Origin
from ledger.events.resource import ResourceSaved
from ledger.privacy.personal import persons
from ledger.privacy.secure_body import key_name, seal_secure, unsealed
from ledger.privacy.vault import Tombstone, Vault
from ledger.wire.subjects import stated_by
from producers.access.principal import require_addressable
from producers.operations.desk import Desk, folded
from producers.operations.publish import lifted, mismatch
from producers.operations.stated_before import earlier_event
from producers.operations.stating import default_owner, not_owner
from projections.views.resources import ask

_STATED = {"title", "body", "content_type", "metadata", "shared_with", "expected_version"}
"""Payload fields that the event takes over unchanged."""


def vault_of(desk: Desk) -> Vault:
    """The vault that secrets are sealed with. Raises NotAvailable."""
    if desk.vault is None:
        raise NotAvailable("this node has no vault, and so keeps no secrets: ask one that has")
    return desk.vault


async def resource_now(desk: Desk, caller: Caller, resource_id: str) -> tuple[ask.Standing | None, int]:
    """The resource with its whole history folded, and its last position."""
    last = await folded(desk, "resource", resource_id)
    return await desk.view.ask(ask.standing, desk.org, caller, resource_id), last


async def refuse_other_save(
    desk: Desk, payload: ResourceRequest, owner: str, scopes: list[str], own_id: str, actors: Collection[str]
) -> None:
    """Raise IdempotencyMismatch where the save under this event id differs."""
    fields = {"scopes": scopes, "owner": owner, **payload.model_dump(mode="json", include=_STATED)}
    before = await earlier_event(desk, actors, own_id, fields)
    if before is None:
        return
    if before.entity_id != payload.id:
        raise mismatch()
    await _refuse_other_secret(desk, payload, before.data.get("secure_body"))


async def refuse_unkept(desk: Desk, payload: ResourceRequest, scopes: list[str], then: ask.Standing | None) -> None:
    """Raise IdempotencyMismatch for a resource without an event under its key, unless it was the same `then`."""
    if then is None or then.status != "active":
        raise mismatch()
    if not then.erased and _statement(payload, scopes) != then.statement:  # an erased one cannot be compared
        raise mismatch()
    await _refuse_other_secret(desk, payload, then.sealed)


async def _refuse_other_secret(desk: Desk, payload: ResourceRequest, sealed: str | None) -> None:
    if not sealed and payload.secure_body is None:
        return
    if not sealed or payload.secure_body is None:
        raise mismatch()
    try:
        earlier_secret = await unsealed(vault_of(desk), sealed, payload.id, org=desk.org)
    except LedgerError:  # a secret that can no longer be opened cannot be compared
        return
    if earlier_secret != payload.secure_body:
        raise mismatch()


def addressed(caller: Caller, payload: ResourceRequest, standing: ask.Standing | None) -> tuple[str, list[str]]:
    """The owner and the scopes of a resource. Raises NotOwner, Forbidden."""
    if standing is None:
        owner = payload.owner or default_owner(caller, None)
        if not caller.may_act_for(owner):
            raise not_owner(f"save a resource owned by {owner}", owner, caller)
    else:
        owner = standing.owner
        if not caller.may_act_for(owner):
            if standing.readable:
                raise not_owner(f"save {payload.id}, which {owner} owns", owner, caller)
            raise NotOwner(f"the id {payload.id!r} is taken by somebody else's resource: choose another", id=payload.id)
        if payload.owner not in (None, owner):
            raise NotOwner(f"{payload.id} is owned by {owner} and stays so: save it as {owner}", id=payload.id)
    scopes = list(dict.fromkeys(payload.scopes or [owner]))
    *_, scopes_now, shared_now = ([], []) if standing is None else standing.statement
    require_addressable(caller, scopes, "what you save", scopes_now)
    require_addressable(caller, payload.shared_with, "what you save", shared_now)
    return owner, scopes


async def saving(
    desk: Desk,
    lineage: Lineage,
    payload: ResourceRequest,
    now: ask.Standing | None,
    last: int,
    addressed_to: tuple[str, list[str]],
    own_id: str,
) -> NewEvent:
    """The event of a save, secret sealed; `now`, `last` come from `resource_now`, `addressed_to` from `addressed`.

    Raises VersionConflict, IllegalState (its secret was destroyed), NotAvailable, SubjectForgotten, BrokerUnavailable.
    """
    _check_version(payload, now)
    owner, scopes = addressed_to
    references = {"trace_id": payload.trace_id, "message_id": payload.message_id}
    origin = Origin(**references) if any(references.values()) else None
    secret = await _sealed(desk, payload, owner, scopes, own_id)
    said = payload.model_dump(include=_STATED)
    fact = ResourceSaved(secure_body=secret, scopes=scopes, owner=owner, origin=origin, **said)
    return NewEvent(fact, payload.id, owner, desk.org, lifted(lineage, **references), id=own_id, expects=last)


def _check_version(payload: ResourceRequest, standing: ask.Standing | None) -> None:
    version = 0 if standing is None else standing.version
    if payload.expected_version not in (None, version):
        raise VersionConflict(
            f"{payload.id} is at version {version}, you expected {payload.expected_version}: read it again, and save "
            "what you mean now",
            id=payload.id,
            version=version,
        )


async def is_unchanged(desk: Desk, payload: ResourceRequest, scopes: list[str], standing: ask.Standing) -> bool:
    if standing.erased or standing.status != "active" or _statement(payload, scopes) != standing.statement:
        return False
    if not standing.sealed or payload.secure_body is None:
        return not standing.sealed and payload.secure_body is None
    try:
        return bool(payload.secure_body == await unsealed(vault_of(desk), standing.sealed, payload.id, org=desk.org))
    except LedgerError:  # a secret that can no longer be opened is saved again
        return False


async def _sealed(desk: Desk, payload: ResourceRequest, owner: str, scopes: list[str], own_id: str) -> str | None:
    if payload.secure_body is None:
        return None
    vault = vault_of(desk)
    held = (await vault.look([key_name(payload.id)])).get(key_name(payload.id))
    if isinstance(held, Tombstone):
        raise IllegalState(
            f"the secret of {payload.id} was destroyed at {held.at}, and this id keeps no other: choose another",
            id=payload.id,
        )
    return await seal_secure(
        vault,
        payload.secure_body,
        payload.id,
        org=desk.org,
        persons=persons(owner, scopes),
        event_id=own_id,
        by=stated_by(desk.org, owner),
    )


def _statement(payload: ResourceRequest, scopes: list[str]) -> tuple[Any, ...]:
    """The payload in the form of `ask.Standing.statement`."""
    return payload.title, payload.body, payload.content_type, payload.metadata, scopes, payload.shared_with

"""How do resources change? Saved, retired, restored, a secret destroyed; each stated by the owner (mission X1-X4).

A secret is sealed here, before a fact is made of it, and is opened by producers/operations/resource_reading.py alone.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Literal

from ledger.errors import IllegalState, LedgerError, NotAvailable, NotOwner, UnknownResource, VersionConflict
from ledger.event import Fact, Lineage, NewEvent
from ledger.events.knowledge import Origin
from ledger.events.resource import ResourceRestored, ResourceRetired, ResourceSaved, ResourceSecretDestroyed
from ledger.personal import persons
from ledger.scopes import Caller
from ledger.secure_body import key_name, seal_secure, unsealed
from ledger.subjects import stated_by
from ledger.vault import Tombstone, Vault
from producers.access.principal import require_addressable
from producers.operations.desk import Desk
from producers.operations.knowledge import ATTEMPTS, Changed, Saved
from producers.operations.stated_before import asked, stated
from producers.operations.stating import default_owner, not_owner
from producers.publish import event_id, lifted, mismatch, publish
from producers.resource_requests import ResourceRequest
from projections.resources import ask

_STATED = {"title", "body", "content_type", "metadata", "shared_with", "expected_version"}
"""What an event has of a payload as it is."""


def unknown(resource_id: str) -> UnknownResource:
    """No such resource, or none for this caller: the words are the same."""
    return UnknownResource(
        f"there is no resource {resource_id[:200]!r} that you may see: check the id and your identity headers",
        id=resource_id,
    )


def vault_of(desk: Desk) -> Vault:
    """The vault that secrets are sealed with. Raises NotAvailable."""
    if desk.vault is None:
        raise NotAvailable("this node has no vault, and so keeps no secrets: ask one that has")
    return desk.vault


async def save(
    desk: Desk, caller: Caller, lineage: Lineage, payload: ResourceRequest, retry: uuid.UUID | None = None
) -> Saved:
    """Keep a new resource, or the next version of one; a save that says what the resource says already appends nothing.

    Raises IllegalScope, NotOwner, Forbidden, VersionConflict, IllegalState (its secret was destroyed),
    SubjectForgotten, InvalidPayload, PayloadTooLarge, IllegalSubject, BrokerUnavailable, ViewBehind.
    """
    own_id = event_id(retry)
    stated = {"trace_id": payload.trace_id, "message_id": payload.message_id}
    origin = Origin(**stated) if any(stated.values()) else None
    lineage = lifted(lineage, **stated)
    for _ in range(ATTEMPTS):
        standing, last = await _standing(desk, caller, payload.id)
        owner, scopes = _addressed(caller, payload, standing)
        if retry is not None and (before := await _kept(desk, owner, own_id)) is not None:
            await _refuse_another(desk, payload, owner, scopes, own_id)
            return before
        if standing is not None and await _says_the_same(desk, payload, scopes, standing):
            return Saved(payload.id, standing.position, standing.version, standing.event_id, True)
        _check_version(payload, standing)
        secret = await _sealed(desk, payload, owner, scopes, own_id)
        said = payload.model_dump(include=_STATED)
        fact = ResourceSaved(secure_body=secret, scopes=scopes, owner=owner, origin=origin, **said)
        event = NewEvent(fact, payload.id, owner, desk.org, lineage, id=own_id, expects=last)
        try:
            (kept,) = await publish(desk.ledger, desk.tally, [event])
        except VersionConflict:
            continue
        if kept.duplicate:
            await desk.view.wait_for(kept.position)
            if (before := await _kept(desk, owner, own_id)) is not None:
                await _refuse_another(desk, payload, owner, scopes, own_id)
                return before
        return Saved(payload.id, kept.position, 1 if standing is None else standing.version + 1, own_id, kept.duplicate)
    raise VersionConflict(f"others keep writing to {payload.id}: try again", id=payload.id)


async def _standing(desk: Desk, caller: Caller, resource_id: str) -> tuple[ask.Standing | None, int]:
    """The resource out of a view that has its whole history, and the last position of that."""
    last = await desk.ledger.last_position_of(desk.org, "resource", resource_id)
    if desk.view.position < last:
        await desk.view.wait_for(last)
    return await desk.view.ask(ask.standing, desk.org, caller, resource_id), last


async def _refuse_another(desk: Desk, payload: ResourceRequest, owner: str, scopes: list[str], own_id: str) -> None:
    """Raise IdempotencyMismatch when the save that was kept under this event's id said something else."""
    said = {"scopes": scopes, "owner": owner, **payload.model_dump(mode="json", include=_STATED)}
    before = await stated(desk, [owner], own_id, said)
    sealed = None if before is None else before.data.get("secure_body")
    if before is None or (before.entity_id == payload.id and not sealed and payload.secure_body is None):
        return
    if before.entity_id != payload.id or not sealed or payload.secure_body is None:
        raise mismatch()
    try:
        said_before = await unsealed(vault_of(desk), sealed, payload.id, org=desk.org)
    except LedgerError:  # what cannot be opened any more says nothing that could be compared
        return
    if said_before != payload.secure_body:
        raise mismatch()


async def _kept(desk: Desk, owner: str, own_id: str) -> Saved | None:
    found = await desk.view.ask(ask.kept_version, desk.org, owner, own_id)
    return None if found is None else Saved(found[0], found[2], found[1], own_id, True)


def _addressed(caller: Caller, payload: ResourceRequest, standing: ask.Standing | None) -> tuple[str, list[str]]:
    """Whose the resource is and who sees it. Raises NotOwner, Forbidden."""
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
    require_addressable(caller, [*scopes, *payload.shared_with], "what you save")
    return owner, scopes


def _check_version(payload: ResourceRequest, standing: ask.Standing | None) -> None:
    version = 0 if standing is None else standing.version
    if payload.expected_version not in (None, version):
        raise VersionConflict(
            f"{payload.id} is at version {version}, you expected {payload.expected_version}: read it again, and save "
            "what you mean now",
            id=payload.id,
            version=version,
        )


async def _says_the_same(desk: Desk, payload: ResourceRequest, scopes: list[str], standing: ask.Standing) -> bool:
    said = (payload.title, payload.body, payload.content_type, payload.metadata, scopes, payload.shared_with)
    if standing.status != "active" or said != standing.statement:
        return False
    if not standing.sealed or payload.secure_body is None:
        return not standing.sealed and payload.secure_body is None
    try:
        return bool(payload.secure_body == await unsealed(vault_of(desk), standing.sealed, payload.id, org=desk.org))
    except LedgerError:  # what cannot be opened any more is stated anew
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


async def retire(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    resource_id: str,
    reason: str | None = None,
    retry: uuid.UUID | None = None,
    *,
    destroy_secret: bool = False,
) -> Changed:
    """Take a resource out of use. With `destroy_secret` its key is destroyed first, for good and in every version.

    Raises UnknownResource, NotOwner, IllegalState (retired already, unless a secret is to be destroyed),
    SubjectForgotten, BrokerUnavailable, ViewBehind.
    """
    if not destroy_secret:
        return await _turn(desk, caller, lineage, resource_id, ResourceRetired(reason=reason), event_id(retry))
    standing, _ = await _owned(desk, caller, resource_id)
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    told = event_id(retry, "secret_destroyed")
    await vault_of(desk).destroy(key_name(resource_id), by=standing.owner, at=now, receipt=told)
    if standing.status == "active":
        await _turn(desk, caller, lineage, resource_id, ResourceRetired(reason=reason), event_id(retry))
    return await _turn(desk, caller, lineage, resource_id, ResourceSecretDestroyed(reason=reason), told)


async def restore(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    resource_id: str,
    reason: str | None = None,
    retry: uuid.UUID | None = None,
) -> Changed:
    """Bring a retired resource back. Raises as `retire` does."""
    return await _turn(desk, caller, lineage, resource_id, ResourceRestored(reason=reason), event_id(retry))


async def _owned(desk: Desk, caller: Caller, resource_id: str) -> tuple[ask.Standing, int]:
    standing, last = await _standing(desk, caller, resource_id)
    if standing is None or not (standing.readable or caller.may_act_for(standing.owner)):
        raise unknown(resource_id)
    if not caller.may_act_for(standing.owner):
        raise not_owner(f"change {resource_id}, which {standing.owner} owns", standing.owner, caller)
    return standing, last


async def _turn(desk: Desk, caller: Caller, lineage: Lineage, resource_id: str, fact: Fact, own_id: str) -> Changed:
    for _ in range(ATTEMPTS):
        standing, last = await _owned(desk, caller, resource_id)
        if (before := await stated(desk, [standing.owner], own_id, asked(fact))) is not None:
            return Changed(resource_id, before.position, own_id)
        _check_turn(resource_id, fact, standing.status)
        event = NewEvent(fact, resource_id, standing.owner, desk.org, lineage, id=own_id, expects=last)
        try:
            (done,) = await publish(desk.ledger, desk.tally, [event])
        except VersionConflict:
            continue
        return Changed(resource_id, done.position, own_id)
    raise VersionConflict(f"others keep writing to {resource_id}: try again", id=resource_id)


def _check_turn(resource_id: str, fact: Fact, status: str) -> None:
    becomes: Literal["active", "retired"] | None = None
    if isinstance(fact, ResourceRetired):
        becomes = "retired"
    elif isinstance(fact, ResourceRestored):
        becomes = "active"
    if status == becomes:
        raise IllegalState(
            f"{resource_id} is {status} already: "
            + ("restore it first" if status == "retired" else "there is nothing to restore"),
            id=resource_id,
            status=status,
        )

"""Changes of resources: save, retire, restore, and destroy the secret, each published by the owner."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from datetime import UTC, datetime

from kledger.answers.parts import Moved, Saved
from kledger.contract.errors import IllegalState, UnknownResource, VersionConflict
from kledger.contract.scopes import Caller
from kledger.contract.words import ResourceStatus
from kledger.requests.resources import ResourceRequest
from ledger.event import Fact, Lineage, NewEvent
from ledger.events.resource import ResourceRestored, ResourceRetired, ResourceSecretDestroyed
from ledger.privacy.secure_body import key_name
from ledger.privacy.vault import Tombstone
from producers.operations.desk import Desk
from producers.operations.outcomes import ATTEMPTS, as_saved, others_write_to
from producers.operations.publish import event_id, mismatch, publish
from producers.operations.resources.stating import (
    addressed,
    is_unchanged,
    refuse_other_save,
    resource_now,
    saving,
    vault_of,
)
from producers.operations.stated_before import (
    earlier_event,
    events_of_key,
    possible_actors,
    refuse_extra,
    request_fields,
)
from producers.operations.stating import not_owner
from projections.views.resources import ask


def unknown(resource_id: str) -> UnknownResource:
    """The error for a resource that does not exist or is not visible to the caller; both read the same."""
    return UnknownResource(
        f"there is no resource {resource_id[:200]!r} that you may see: check the id and as whom you ask",
        id=resource_id,
    )


async def save(
    desk: Desk, caller: Caller, lineage: Lineage, payload: ResourceRequest, retry: uuid.UUID | None = None
) -> Saved:
    """Save a new resource, or the next version of one; a save without a difference appends nothing.

    Raises IllegalScope, NotOwner, Forbidden, VersionConflict, IllegalState (its secret was destroyed),
    SubjectForgotten, InvalidPayload, PayloadTooLarge, IllegalSubject, BrokerUnavailable, ViewBehind.
    """
    own_id = event_id(retry)
    for _ in range(ATTEMPTS):
        standing, last = await resource_now(desk, caller, payload.id)
        owner, scopes = addressed(caller, payload, standing)
        if (
            retry is not None
            and (before := await _appended_save(desk, possible_actors(caller, owner), own_id)) is not None
        ):
            await refuse_other_save(desk, payload, owner, scopes, own_id, possible_actors(caller, owner))
            return before
        if standing is not None and await is_unchanged(desk, payload, scopes, standing):
            return as_saved(payload.id, standing.position, standing.version, standing.event_id, True)
        event = await saving(desk, lineage, payload, standing, last, (owner, scopes), own_id)
        try:
            (appended,) = await publish(desk.ledger, desk.tally, [event])
        except VersionConflict:
            continue
        if appended.duplicate:
            await desk.view.wait_for(appended.position)
            if (before := await _appended_save(desk, possible_actors(caller, owner), own_id)) is not None:
                await refuse_other_save(desk, payload, owner, scopes, own_id, possible_actors(caller, owner))
                return before
        version = 1 if standing is None else standing.version + 1
        return as_saved(payload.id, appended.position, version, own_id, appended.duplicate)
    raise others_write_to(payload.id)


async def _appended_save(desk: Desk, actors: Collection[str], own_id: str) -> Saved | None:
    version = await desk.view.ask(ask.kept_version, desk.org, actors, own_id)
    return None if version is None else as_saved(version[0], version[2], version[1], own_id, True)


async def retire(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    resource_id: str,
    reason: str | None = None,
    retry: uuid.UUID | None = None,
    *,
    destroy_secret: bool = False,
) -> Moved:
    """Retire a resource. With `destroy_secret` its key is destroyed first, permanently and for every version.

    Raises UnknownResource, NotOwner, IllegalState (retired already, unless a secret is to be destroyed),
    SubjectForgotten, BrokerUnavailable, ViewBehind.
    """
    retired_id, destroyed_id = event_id(retry), event_id(retry, "secret_destroyed")
    if not destroy_secret and retry is None:
        return await _publish_as_owner(desk, caller, lineage, resource_id, ResourceRetired(reason=reason), retired_id)
    standing, _ = await _owned(desk, caller, resource_id)
    events_by_id = {} if retry is None else await events_of_key(desk, [standing.owner], [retired_id, destroyed_id])
    if not destroy_secret:
        refuse_extra(events_by_id, [retired_id])
        return await _publish_as_owner(desk, caller, lineage, resource_id, ResourceRetired(reason=reason), retired_id)
    if retired_id in events_by_id and destroyed_id not in events_by_id:
        # The key retired the resource only: that was the request, or an earlier attempt ended between the two events.
        held = (await vault_of(desk).look([key_name(resource_id)])).get(key_name(resource_id))
        if not isinstance(held, Tombstone) or held.receipt != destroyed_id:
            raise mismatch()
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    await vault_of(desk).destroy(key_name(resource_id), by=standing.owner, at=now, receipt=destroyed_id)
    if standing.status == "active":
        await _publish_as_owner(desk, caller, lineage, resource_id, ResourceRetired(reason=reason), retired_id)
    return await _publish_as_owner(
        desk, caller, lineage, resource_id, ResourceSecretDestroyed(reason=reason), destroyed_id
    )


async def restore(
    desk: Desk,
    caller: Caller,
    lineage: Lineage,
    resource_id: str,
    reason: str | None = None,
    retry: uuid.UUID | None = None,
) -> Moved:
    """Restore a retired resource. Raises as `retire` does."""
    return await _publish_as_owner(desk, caller, lineage, resource_id, ResourceRestored(reason=reason), event_id(retry))


async def _owned(desk: Desk, caller: Caller, resource_id: str) -> tuple[ask.Standing, int]:
    standing, last = await resource_now(desk, caller, resource_id)
    if standing is None or not (standing.readable or caller.may_act_for(standing.owner)):
        raise unknown(resource_id)
    if not caller.may_act_for(standing.owner):
        raise not_owner(f"change {resource_id}, which {standing.owner} owns", standing.owner, caller)
    return standing, last


async def _publish_as_owner(
    desk: Desk, caller: Caller, lineage: Lineage, resource_id: str, fact: Fact, own_id: str
) -> Moved:
    for _ in range(ATTEMPTS):
        standing, last = await _owned(desk, caller, resource_id)
        if (before := await earlier_event(desk, [standing.owner], own_id, request_fields(fact))) is not None:
            return Moved(id=resource_id, position=before.position, event_id=own_id)
        _refuse_same_status(resource_id, standing.status, _BECOMES.get(type(fact)))
        event = NewEvent(fact, resource_id, standing.owner, desk.org, lineage, id=own_id, expects=last)
        try:
            (appended,) = await publish(desk.ledger, desk.tally, [event])
        except VersionConflict:
            continue
        return Moved(id=resource_id, position=appended.position, event_id=own_id)
    raise others_write_to(resource_id)


_BECOMES: dict[type[Fact], ResourceStatus] = {ResourceRetired: "retired", ResourceRestored: "active"}


def _refuse_same_status(resource_id: str, status: str, becomes: ResourceStatus | None) -> None:
    """Raise IllegalState where the resource has the status already that a change is to give it."""
    if status == becomes:
        advice = "restore it first" if status == "retired" else "there is nothing to restore"
        raise IllegalState(f"{resource_id} is {status} already: {advice}", id=resource_id, status=status)

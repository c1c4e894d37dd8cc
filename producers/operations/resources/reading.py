"""Reads of resources: the secret is for the owner and those that it is shared with.

The only place where an interface opens a secret. An expired or retired resource is never reported as valid.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import structlog

from kledger.contract.errors import Erased, KeyMissing, SealBroken, UnknownResource
from kledger.contract.scopes import Caller
from kledger.contract.words import SecretState
from ledger.event import JsonObject
from ledger.privacy.sealed import ERASED
from ledger.privacy.secure_body import may_open, open_secure
from producers.operations.desk import ANY, Desk, Freshness, position_as_of, reach
from producers.operations.not_then import not_then
from producers.operations.outcomes import listed
from producers.operations.resources.changes import unknown
from producers.operations.resources.stating import vault_of
from projections.fold_kit.page import Window
from projections.views.resources import ask

log = structlog.get_logger(__name__)

_OLD = frozenset({"expired", "retired", "superseded"})


async def get(
    desk: Desk,
    caller: Caller,
    resource_id: str,
    *,
    as_of: int | datetime | None = None,
    include_expired: bool = False,
    freshness: Freshness = ANY,
) -> JsonObject:
    """One resource, with `secure_body` for those who may read it, and its state in `secure`.

    `include_expired`: the owner can read the secret also of an expired, retired or (since `as_of`) superseded
    resource; `valid` stays false.
    Raises UnknownResource, Erased, InvalidPayload (as_of), ViewBehind.
    """
    await reach(desk, freshness)
    then = await position_as_of(desk, as_of, freshness)
    row = await desk.view.ask(ask.resource, desk.org, caller, resource_id, then)
    if row is None:
        if then is not None and (found := await desk.view.ask(ask.versions, desk.org, caller, resource_id)):
            raise UnknownResource(not_then(f"resource {resource_id!r}", then, found[0]), id=resource_id)
        raise unknown(resource_id)
    resource, sealed, current = row
    if resource["title"] == ERASED and await desk.view.ask(ask.is_erased, desk.org, resource_id, resource["version"]):
        raise Erased(f"what {resource_id} said was erased with the person it belonged to", id=resource_id)
    secure, secret = _secure_state(resource, sealed, caller, current), None
    if secure == "given" or (secure in _OLD and include_expired and may_open(caller, resource["owner"], ())):
        owner, shared_with = resource["owner"], resource["shared_with"]
        try:
            secret = await open_secure(
                vault_of(desk), sealed, resource_id, org=desk.org, caller=caller, owner=owner, shared_with=shared_with
            )
        except Erased:
            secure = "erased"
        except (KeyMissing, SealBroken) as error:  # what a publisher sealed otherwise than a node does fails no read
            log.warning("the secret of a resource does not open", id=resource_id, code=error.code)
            secure = "unreadable"
    return {**_with_validity(resource, current), "secure_body": secret, "secure": secure}


def _secure_state(resource: JsonObject, sealed: str, caller: Caller, current: bool) -> SecretState:
    """Whether the secret is given, or why it is not, as far as the view knows."""
    if not sealed:
        return "none"
    if not may_open(caller, resource["owner"], resource["shared_with"]):
        return "withheld"
    if not resource["has_secure"]:
        return "erased"
    if not current:
        return "superseded"
    return "expired" if resource["expired"] else "given" if resource["status"] == "active" else "retired"


def _with_validity(resource: JsonObject, current: bool = True) -> JsonObject:
    return {**resource, "valid": current and resource["status"] == "active" and not resource["expired"]}


async def list_resources(
    desk: Desk,
    caller: Caller,
    window: Window,
    *,
    content_type: str | None = None,
    status: str = "active",
    as_of: int | datetime | None = None,
    freshness: Freshness = ANY,
) -> JsonObject:
    """The resources visible to the caller, without secrets; a list as of a moment reports none of them as valid.

    Raises InvalidPayload (as_of), ViewBehind.
    """
    await reach(desk, freshness)
    then = await position_as_of(desk, as_of, freshness)
    position = desk.view.position if then is None else then
    page = await desk.view.ask(
        ask.resources, desk.org, caller, window, content_type=content_type, status=status, as_of=then
    )
    results = [_with_validity(each, current=then is None) for each in page.results]
    return listed(replace(page, results=results), position)


async def history(
    desk: Desk, caller: Caller, resource_id: str, before: int | None = None, *, freshness: Freshness = ANY
) -> JsonObject:
    """Every version of a resource before a position that the caller may read: the latest, and `next`, where they are
    more than fit into an answer. Raises UnknownResource, ViewBehind.
    """
    await reach(desk, freshness)
    position = desk.view.position
    found = await desk.view.ask(ask.versions, desk.org, caller, resource_id, before)
    if found is None:
        raise unknown(resource_id)
    versions, earlier = found
    shown = {"id": resource_id, "versions": versions, "position": position}
    return shown if earlier is None else {**shown, "next": earlier}

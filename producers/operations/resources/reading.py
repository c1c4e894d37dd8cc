"""What is said of a resource to whom? The secret is for its owner and those it is shared with.

The only place where a door opens a secret. What has expired or was retired is never served as valid (mission X4).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from kledger.contract.errors import Erased, UnknownResource
from kledger.contract.scopes import Caller
from ledger.event import JsonObject
from ledger.privacy.sealed import ERASED
from ledger.privacy.secure_body import may_open, open_secure
from producers.operations.desk import ANY, Desk, Freshness, position_as_of, reach
from producers.operations.knowledge.reading import Listed
from producers.operations.not_then import not_then
from producers.operations.resources.changes import unknown
from producers.operations.resources.stating import vault_of
from projections.views.resources import ask

Secure = Literal["none", "given", "withheld", "expired", "retired", "superseded", "erased"]
"""Why `secure_body` is what it is: there is none, here it is, it is not for you, it is no longer valid, it is gone."""


_OLD = frozenset({"expired", "retired", "superseded"})


@dataclass(frozen=True, slots=True)
class ResourceHistory:
    """A resource's versions, oldest first, none with its secret."""

    id: str
    versions: list[JsonObject]
    position: int


async def get(
    desk: Desk,
    caller: Caller,
    resource_id: str,
    *,
    as_of: int | datetime | None = None,
    include_expired: bool = False,
    freshness: Freshness = ANY,
) -> JsonObject:
    """One resource, with `secure_body` for those who may read it, and `secure`, which says why it is what it is.

    `include_expired`: the owner reads the secret also of what has expired, was retired, or was stated anew since
    `as_of`; `valid` stays false.
    Raises UnknownResource, Erased, InvalidPayload (as_of), KeyMissing, SealBroken, ViewBehind.
    """
    await reach(desk, freshness)
    then = None if as_of is None else await position_as_of(desk, as_of, freshness)
    found = await desk.view.ask(ask.resource, desk.org, caller, resource_id, then)
    if found is None:
        if then is not None and (life := await desk.view.ask(ask.versions, desk.org, caller, resource_id)):
            raise UnknownResource(not_then(f"resource {resource_id!r}", then, life), id=resource_id)
        raise unknown(resource_id)
    told, sealed, current = found
    if told["title"] == ERASED and await desk.view.ask(ask.is_erased, desk.org, resource_id, told["version"]):
        raise Erased(f"what {resource_id} said was erased with the person it belonged to", id=resource_id)
    secure, secret = _why(told, sealed, caller, current), None
    if secure == "given" or (secure in _OLD and include_expired and may_open(caller, told["owner"], ())):
        owner, shared_with = told["owner"], told["shared_with"]
        try:
            secret = await open_secure(
                vault_of(desk), sealed, resource_id, org=desk.org, caller=caller, owner=owner, shared_with=shared_with
            )
        except Erased:
            secure = "erased"
    return {**_valid(told, current), "secure_body": secret, "secure": secure}


def _why(told: JsonObject, sealed: str, caller: Caller, current: bool) -> Secure:
    """Whether the secret is given, as far as the view knows, or why it is not."""
    if not sealed:
        return "none"
    if not may_open(caller, told["owner"], told["shared_with"]):
        return "withheld"
    if not told["has_secure"]:
        return "erased"
    if not current:
        return "superseded"
    return "expired" if told["expired"] else "given" if told["status"] == "active" else "retired"


def _valid(told: JsonObject, current: bool = True) -> JsonObject:
    return {**told, "valid": current and told["status"] == "active" and not told["expired"]}


async def list_resources(
    desk: Desk,
    caller: Caller,
    *,
    limit: int = 10,
    offset: int = 0,
    before: int | None = None,
    content_type: str | None = None,
    status: str = "active",
    as_of: int | datetime | None = None,
    freshness: Freshness = ANY,
) -> Listed:
    """The resources that the caller sees, without their secrets; a list as of then calls none of them valid.

    Raises InvalidPayload (as_of), ViewBehind.
    """
    await reach(desk, freshness)
    then = None if as_of is None else await position_as_of(desk, as_of, freshness)
    position = desk.view.position if then is None else then
    found = await desk.view.ask(
        ask.resources,
        desk.org,
        caller,
        limit=limit,
        offset=offset,
        before=before,
        content_type=content_type,
        status=status,
        as_of=then,
    )
    results = [_valid(each, current=then is None) for each in found.results]
    return Listed(results, len(results), found.total, found.next, position)


async def history(desk: Desk, caller: Caller, resource_id: str, *, freshness: Freshness = ANY) -> ResourceHistory:
    """Every version of a resource that the caller may read. Raises UnknownResource, ViewBehind."""
    await reach(desk, freshness)
    position = desk.view.position
    found = await desk.view.ask(ask.versions, desk.org, caller, resource_id)
    if found is None:
        raise unknown(resource_id)
    return ResourceHistory(resource_id, found, position)

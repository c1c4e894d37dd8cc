"""Requests about resources: code, credentials, cookies that knowledge refers to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kledger.client.faces import Endpoint
from kledger.client.knowledge import Moment, moment
from kledger.client.wire import Wire, segment, without_none
from kledger.contract.words import ResourceFilter

if TYPE_CHECKING:
    from kledger.answers.parts import Moved, Saved
    from kledger.answers.resources import Resource, ResourceHistory, ResourceList

RESOURCE = "/api/resource"


async def save(
    wire: Wire,
    id: str,
    title: str,
    *,
    body: str = "",
    secure_body: str | None = None,
    content_type: str = "text",
    metadata: Mapping[str, Any] | None = None,
    scopes: Sequence[str] | None = None,
    owner: str | None = None,
    shared_with: Sequence[str] | None = None,
    expected_version: int | None = None,
    idempotency_key: str | None = None,
) -> Saved:
    """Save a resource, whole: a new one, or the next version of one's own (what is not given is empty then).

    `secure_body` is a secret: sealed on its way to the log, for the owner and the entities of `shared_with`.
    With `expected_version` it is refused (VersionConflict) when somebody was faster. NotOwner, InvalidPayload.
    """
    said = {
        "id": id,
        "title": title,
        "body": body,
        "secure_body": secure_body,
        "content_type": content_type,
        "metadata": dict(metadata or {}),
        "scopes": scopes,
        "owner": owner,
        "shared_with": list(shared_with or ()),
        "expected_version": expected_version,
    }
    return await wire.write("POST", RESOURCE, without_none(**said), idempotency_key=idempotency_key)


async def get(wire: Wire, id: str, *, as_of: Moment | None = None, include_expired: bool = False) -> Resource:
    """One resource; `secure` says why its `secure_body` is there or not. UnknownResource when there is none to see.

    `include_expired`: the owner reads the secret also of what is no longer valid.
    """
    return await wire.read(
        f"{RESOURCE}/{segment(id)}",
        {"as_of": moment(as_of), "include_expired": True if include_expired else None},
    )


async def list_resources(
    wire: Wire,
    *,
    content_type: str | None = None,
    limit: int = 10,
    offset: int = 0,
    before: int | None = None,
    status: ResourceFilter = "active",
    as_of: Moment | None = None,
) -> ResourceList:
    """A page of the resources that the caller may see, newest first, without their secrets."""
    return await wire.read(
        RESOURCE,
        {
            "content_type": content_type,
            "limit": limit,
            "offset": offset,
            "before": before,
            "status": status,
            "as_of": moment(as_of),
        },
    )


async def history(wire: Wire, id: str, *, before: int | None = None) -> ResourceHistory:
    """Every version of a resource, oldest first, without its secret.

    Of more than fit into an answer the latest: `next` is then the `before` of the earlier ones.
    """
    return await wire.read(f"{RESOURCE}/{segment(id)}/history", {"before": before})


async def retire(
    wire: Wire,
    id: str,
    *,
    reason: str | None = None,
    destroy_secret: bool = False,
    idempotency_key: str | None = None,
) -> Moved:
    """Take a resource out of use; it stays readable. With `destroy_secret` no version's secret can be read any more.

    Only the owner may; IllegalState when it is retired (unless its secret is to be destroyed).
    """
    params = {"reason": reason, "destroy_secret": True if destroy_secret else None}
    return await wire.write("DELETE", f"{RESOURCE}/{segment(id)}", params=params, idempotency_key=idempotency_key)


async def restore(wire: Wire, id: str, *, reason: str | None = None, idempotency_key: str | None = None) -> Moved:
    """Bring a retired resource back. Only the owner may; IllegalState when it is active."""
    return await wire.write(
        "POST", f"{RESOURCE}/{segment(id)}/restore", params={"reason": reason}, idempotency_key=idempotency_key
    )


class ResourceEndpoints:
    """What knowledge refers to: code, credentials, cookies."""

    save = Endpoint(save)
    get = Endpoint(get)
    list = Endpoint(list_resources)
    history = Endpoint(history)
    retire = Endpoint(retire)
    restore = Endpoint(restore)

"""Requests about all that a caller sees: facets, the overview, and what changed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from kledger.client.faces import Endpoint
from kledger.client.knowledge import Moment, filters, moment
from kledger.client.wire import Wire, comma_joined
from kledger.contract.words import ItemFilter, ItemLayer, MemoryConcern

if TYPE_CHECKING:
    from kledger.answers.admin import WhoAmI
    from kledger.answers.overview import Changes, Facets, Overview

OVERVIEW = "/api/overview"


async def facets(
    wire: Wire,
    *,
    types: Sequence[str] | None = None,
    scopes: Sequence[str] | None = None,
    owner: str | None = None,
    visibility: Sequence[str] | None = None,
    status: ItemFilter = "active",
    tags: Sequence[str] | None = None,
    layers: Sequence[ItemLayer] | None = None,
    min_score: int | None = None,
    max_score: int | None = None,
    since: str | datetime | None = None,
    until: str | datetime | None = None,
    created_by: str | None = None,
    concern: MemoryConcern | None = None,
    as_of: Moment | None = None,
) -> Facets:
    """Of the items that `list` has with the same filters: how many have which type, tag, scope, owner, layer and
    status."""
    asked = filters(
        types=types,
        scopes=scopes,
        owner=owner,
        visibility=visibility,
        status=status,
        tags=tags,
        layers=layers,
        min_score=min_score,
        max_score=max_score,
        since=since,
        until=until,
        created_by=created_by,
        concern=concern,
    )
    return await wire.read(f"{OVERVIEW}/facets", {**asked, "as_of": moment(as_of)})


async def whoami(wire: Wire) -> WhoAmI:
    """As whom the node takes this client: its entities, whether it is the operator, and what its token is bound to."""
    return await wire.look("/api/whoami")


async def overview(wire: Wire, *, days: int = 30) -> Overview:
    """The knowledge that the caller sees in numbers, each of the last days, and items that ask for a look."""
    return await wire.read(OVERVIEW, {"days": days})


async def changes(
    wire: Wire,
    *,
    after: int = 0,
    limit: int = 100,
    change: Sequence[str] | None = None,
    ids: Sequence[str] | None = None,
    types: Sequence[str] | None = None,
    scopes: Sequence[str] | None = None,
    owner: str | None = None,
) -> Changes:
    """What changed after a position of the items that the caller sees, oldest first; then ask again after `next`.

    `change` are kinds of changes (saved, revised, rated, retired, …); `ids`, `types`, `scopes` and `owner` narrow it to
    items, as they are now. Each is any-of, and `next` passes over what they leave out. An item that the caller sees no
    more is not told of.
    """
    asked = {"change": comma_joined(change), "id": comma_joined(ids), "types": comma_joined(types)}
    asked |= {"scopes": comma_joined(scopes), "owner": owner}
    return await wire.read(f"{OVERVIEW}/changes", {"after": after, "limit": limit, **asked})


class OverviewEndpoints:
    """All that the caller sees."""

    facets = Endpoint(facets)
    overview = Endpoint(overview)
    whoami = Endpoint(whoami)
    changes = Endpoint(changes)

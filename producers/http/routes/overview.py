"""The routes about all that a caller sees: facets, the overview, and what changed."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from kledger.answers.overview import Changes, Facets, Overview
from kledger.contract.words import MOST_CHANGES, MOST_DAYS
from producers.http.answers import Json, ReadJson, documented
from producers.http.filters import Filters
from producers.http.parameters import (
    MAX_POSITION,
    AsOf,
    Fresh,
    Owner,
    Scopes,
    Types,
    Who,
    named_changes,
    named_ids,
)
from producers.http.routing import router as new_router
from producers.operations.desk import Desk
from producers.operations.overview import reading
from projections.overview.changes import Followed

_CHANGE = "Any of these changes, separated by commas: saved, revised, rated, confirmed, retired, …"
_IDS = "Only these items, separated by commas"
_AFTER = "Only what changed after this position: `next` of the answer before"


def routes(desk: Desk) -> list[APIRouter]:
    """The routers of this family."""
    router = new_router("overview")

    @router.get("/api/overview/facets", responses=documented(Facets))
    async def facets(caller: Who, fresh: Fresh, as_of: AsOf, wanted: Filters) -> Json:
        """How many of the items that the caller may see have which type, tag, scope, owner, layer and status."""
        return ReadJson(await reading.facets(desk, caller, wanted, as_of=as_of, freshness=fresh), fresh)

    @router.get("/api/overview/changes", responses=documented(Changes))
    async def changes(
        caller: Who,
        fresh: Fresh,
        types: Types,
        scopes: Scopes,
        owner: Owner,
        after: Annotated[int, Query(ge=0, le=MAX_POSITION, description=_AFTER)] = 0,
        limit: Annotated[int, Query(ge=1, le=MOST_CHANGES)] = 100,
        change: Annotated[str | None, Query(description=_CHANGE)] = None,
        id: Annotated[str | None, Query(description=_IDS)] = None,
    ) -> Json:
        """What changed of the items that the caller may see, verdicts included, oldest first.

        Filters are of the items as they are now; what they leave out is passed over by `next`.
        """
        followed = Followed(named_changes(change), named_ids(id, "id"), types, scopes, owner)
        return ReadJson(await reading.changes(desk, caller, after, limit, followed, freshness=fresh), fresh)

    @router.get("/api/overview", responses=documented(Overview))
    async def overview(
        caller: Who,
        fresh: Fresh,
        days: Annotated[int, Query(ge=1, le=MOST_DAYS, description="So many days, today included, in UTC")] = 30,
    ) -> Json:
        """The knowledge that the caller may see in numbers, what happened lately, and items that ask for a look."""
        return ReadJson(await reading.overview(desk, caller, days, freshness=fresh), fresh)

    return [router]

"""The routes of resources. An id reads like a path, and is part of one: raw slashes and %2F both do."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from kledger.answers.parts import Moved, Saved
from kledger.answers.resources import Resource, ResourceHistory, ResourceList
from kledger.contract.words import ResourceFilter
from kledger.requests.resources import ResourceRequest
from producers.http.answers import Json, ReadJson, documented
from producers.http.parameters import (
    AsOf,
    Before,
    BeforeVersion,
    Fresh,
    From,
    Limit,
    Offset,
    Reason,
    ResourceId,
    Retry,
    Who,
)
from producers.http.routing import router as new_router
from producers.operations.desk import Desk
from producers.operations.resources import changes as resources
from producers.operations.resources import reading as resource_reading
from projections.fold_kit.page import Window

BASE = "/api/resource"
ONE = BASE + "/{resource_id:path}"


def routes(desk: Desk) -> list[APIRouter]:
    """The routers of this family."""
    router = new_router("resources")

    @router.post(BASE, status_code=201, responses=documented(Saved, 400, 403, 409, 413, status=201))
    async def save_resource(caller: Who, lineage: From, retry: Retry, body: ResourceRequest) -> Json:
        """Keep a new resource, or state one of your own anew."""
        return Json(await resources.save(desk, caller, lineage, body, retry), 201)

    @router.get(BASE, responses=documented(ResourceList))
    async def list_resources(
        caller: Who,
        fresh: Fresh,
        as_of: AsOf,
        content_type: Annotated[str | None, Query(max_length=64, description="Such as code or credential")] = None,
        limit: Limit = 10,
        offset: Offset = 0,
        before: Before = None,
        status: ResourceFilter = "active",
    ) -> Json:
        """The resources that the caller may see, newest first, without their secrets."""
        page = await resource_reading.list_resources(
            desk,
            caller,
            Window(limit, offset, before),
            content_type=content_type,
            status=status,
            as_of=as_of,
            freshness=fresh,
        )
        return ReadJson(page, fresh)

    @router.get(ONE + "/history", responses=documented(ResourceHistory, 404))
    async def resource_history(
        caller: Who, resource_id: ResourceId, fresh: Fresh, before: BeforeVersion = None
    ) -> Json:
        """Every version, without its secret. An id that itself ends in /history is written with %2F."""
        return ReadJson(await resource_reading.history(desk, caller, resource_id, before, freshness=fresh), fresh)

    @router.get(ONE, responses=documented(Resource, 404, 410))
    async def get_resource(
        caller: Who,
        resource_id: ResourceId,
        fresh: Fresh,
        as_of: AsOf,
        include_expired: Annotated[bool, Query(description="The owner alone: also a secret that is not valid")] = False,
    ) -> Json:
        """One resource; its secret for its owner and those it is shared with."""
        return ReadJson(
            await resource_reading.get(
                desk, caller, resource_id, as_of=as_of, include_expired=include_expired, freshness=fresh
            ),
            fresh,
            headers={"Cache-Control": "no-store"},
        )

    @router.delete(ONE, responses=documented(Moved, 403, 404, 409, 501))
    async def retire_resource(
        caller: Who,
        lineage: From,
        retry: Retry,
        resource_id: ResourceId,
        reason: Reason = None,
        destroy_secret: Annotated[bool, Query(description="For good, and in every version")] = False,
    ) -> Json:
        """Take a resource out of use; its history stays."""
        return Json(
            await resources.retire(desk, caller, lineage, resource_id, reason, retry, destroy_secret=destroy_secret)
        )

    @router.post(ONE + "/restore", responses=documented(Moved, 403, 404, 409))
    async def restore_resource(
        caller: Who, lineage: From, retry: Retry, resource_id: ResourceId, reason: Reason = None
    ) -> Json:
        """Bring a retired resource back."""
        return Json(await resources.restore(desk, caller, lineage, resource_id, reason, retry))

    return [router]

"""The routes of bulks: the same change of many items, shown and reverted later."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path

from kledger.answers.bulk import Bulk, RevertedBulk, ShownBulk
from kledger.contract.knowledge import Id
from kledger.requests.knowledge import BulkRequest, RevertBulkRequest
from producers.http.answers import Json, ReadJson, documented
from producers.http.parameters import Fresh, From, Retry, Who
from producers.http.routing import router as new_router
from producers.operations.bulk import doing, reverting
from producers.operations.desk import Desk

BulkId = Annotated[Id, Path(description="`bulk_id` of the answer")]


def routes(desk: Desk) -> list[APIRouter]:
    """The routers of this family."""
    router = new_router("knowledge")

    @router.post("/api/knowledge/bulk", responses=documented(Bulk, 400, 409, 413))
    async def bulk(caller: Who, lineage: From, retry: Retry, body: BulkRequest) -> Json:
        """Retire, restore or share many items, each judged alone; a dry run, the default, changes nothing."""
        return Json(await doing.bulk(desk, caller, lineage, body, retry))

    @router.get("/api/bulks/{bulk_id}", responses=documented(ShownBulk, 404))
    async def show(caller: Who, fresh: Fresh, bulk_id: BulkId) -> Json:
        """What a bulk of the caller's did, and which items still are as it left them."""
        return ReadJson(await reverting.show(desk, caller, bulk_id, freshness=fresh), fresh)

    @router.post("/api/bulks/{bulk_id}/revert", responses=documented(RevertedBulk, 400, 404))
    async def revert(caller: Who, lineage: From, _retry: Retry, bulk_id: BulkId, body: RevertBulkRequest) -> Json:
        """Undo a bulk of the caller's where its items still are as it left them; once, however often it is sent."""
        return Json(await reverting.revert(desk, caller, lineage, bulk_id, body))

    return [router]

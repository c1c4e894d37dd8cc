"""The routes of slimming: similar items merged, and brought back."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from kledger.answers.slims import ReadSlim, Slim, SlimList
from kledger.contract.words import SlimStatus
from kledger.requests.slims import SlimRequest
from producers.http.answers import UNDER_WAY, Json, ReadJson, documented
from producers.http.parameters import Fresh, From, Limit, Offset, Patience, Reason, Retry, Who
from producers.http.routing import router as new_router
from producers.operations.desk import Desk
from producers.operations.models import processes, slims
from producers.operations.models.processes import MAX_PATIENCE
from projections.views.processes.ask import Page

BASE = "/api/slims"


Patient = Annotated[
    float, Query(alias="patience", ge=0, le=MAX_PATIENCE, description="Seconds to wait until it is settled")
]


def routes(desk: Desk) -> list[APIRouter]:
    """The routers of this family."""
    return [_asked(desk), _decisions(desk)]


def _answer(answer: slims.Answer) -> Json:
    return Json(answer[0], 200 if answer[1] else 202)


def _asked(desk: Desk) -> APIRouter:
    router = new_router("slims")

    @router.post("/api/knowledge/slim", responses=documented(Slim, 400, 403, accepted=UNDER_WAY))
    async def slim(caller: Who, lineage: From, retry: Retry, body: SlimRequest) -> Json:
        """Merge the caller's items that say the same (202 while that is under way); a dry run only says which."""
        return _answer(await slims.slim(desk, caller, lineage, body, retry))

    @router.get(BASE, responses=documented(SlimList))
    async def list_slims(
        caller: Who,
        fresh: Fresh,
        status: SlimStatus | None = None,
        limit: Limit = 20,
        offset: Offset = 0,
    ) -> Json:
        """The slims that the caller asked for, newest first, without their groups."""
        page = Page(status, limit=limit, offset=offset)
        return ReadJson(await processes.listed(desk, caller, slims, page, fresh), fresh)

    @router.get(BASE + "/{slim_id}", responses=documented(ReadSlim, 404))
    async def get(caller: Who, slim_id: str, fresh: Fresh, patience: Patient = 0.0) -> Json:
        """One slim: what was asked, every group with its survivor, what became of it and what it cost."""
        return ReadJson((await slims.get(desk, caller, slim_id, patience, fresh))[0], fresh)

    return router


def _decisions(desk: Desk) -> APIRouter:
    router = new_router("slims", BASE + "/{slim_id}")

    @router.post("/apply", responses=documented(Slim, 404, 409, accepted=UNDER_WAY))
    async def apply(caller: Who, lineage: From, retry: Retry, slim_id: str, wait: Patience = slims.PATIENCE) -> Json:
        """Merge what was proposed (202 while that is under way)."""
        return _answer(await slims.apply(desk, caller, lineage, slim_id, retry, wait=wait))

    @router.post("/reject", responses=documented(Slim, 404, 409))
    async def reject(caller: Who, lineage: From, retry: Retry, slim_id: str, reason: Reason = None) -> Json:
        """Leave everything as it is."""
        return _answer(await slims.reject(desk, caller, lineage, slim_id, reason, retry))

    @router.post("/revert", responses=documented(Slim, 404, 409, accepted=UNDER_WAY))
    async def revert(caller: Who, lineage: From, retry: Retry, slim_id: str, wait: Patience = slims.PATIENCE) -> Json:
        """Make every item again what it was before (202 while that is under way)."""
        return _answer(await slims.revert(desk, caller, lineage, slim_id, retry, wait=wait))

    return router

"""The routes of what was found in messages, and of what contradicts what is known."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from kledger.answers.models import Conflict, ConflictList, Extraction, ExtractionList, ExtractionStatus, Resolved
from kledger.contract.words import ConflictStatus
from kledger.requests.models import ExtractRequest, ResolveRequest
from producers.http.answers import UNDER_WAY, Json, ReadJson, documented
from producers.http.parameters import Fresh, From, Limit, Offset, Patience, Retry, Who
from producers.http.routing import router as new_router
from producers.operations.desk import Desk
from producers.operations.models import conflicts, extractions, processes
from producers.operations.models.processes import PATIENCE
from projections.views.processes.ask import Page


def routes(desk: Desk) -> list[APIRouter]:
    """The routers of this family."""
    return [_extractions(desk), _conflicts(desk)]


def _extractions(desk: Desk) -> APIRouter:
    router = new_router("extractions")

    @router.post("/api/knowledge/extract", responses=documented(Extraction, 400, 403, 413, 501, accepted=UNDER_WAY))
    async def extract(
        caller: Who, lineage: From, retry: Retry, body: ExtractRequest, wait: Patience = PATIENCE
    ) -> Json:
        """Have a model find the knowledge in what was said or done (202 while that is under way)."""
        found, done = await extractions.extract(desk, caller, lineage, body, retry, wait=wait)
        return Json(found, 200 if done else 202)

    @router.get("/api/extractions", responses=documented(ExtractionList))
    async def list_extractions(
        caller: Who,
        fresh: Fresh,
        status: ExtractionStatus | None = None,
        limit: Limit = 20,
        offset: Offset = 0,
    ) -> Json:
        """The extractions that the caller asked for, newest first."""
        page = Page(status, None, limit, offset)
        return ReadJson(await processes.listed(desk, caller, extractions, page, fresh), fresh)

    @router.get("/api/extractions/{extraction_id}", responses=documented(Extraction, 404))
    async def get(caller: Who, extraction_id: str) -> Json:
        """One extraction: what became of each piece of knowledge that was found, and what it cost."""
        return Json(await processes.get(desk, caller, extractions, extraction_id))

    return router


def _conflicts(desk: Desk) -> APIRouter:
    router = new_router("conflicts")

    @router.get("/api/conflicts", responses=documented(ConflictList))
    async def list_conflicts(
        caller: Who,
        fresh: Fresh,
        status: ConflictStatus | None = None,
        item_id: Annotated[str | None, Query(max_length=1_000, description="Only those of this item")] = None,
        limit: Limit = 20,
        offset: Offset = 0,
    ) -> Json:
        """What contradicts what, newest first, as far as it is the caller's to decide."""
        page = Page(status, item_id, limit, offset)
        return ReadJson(await processes.listed(desk, caller, conflicts, page, fresh), fresh)

    @router.get("/api/conflicts/{conflict_id}", responses=documented(Conflict, 404))
    async def get(caller: Who, conflict_id: str) -> Json:
        """One conflict, with both sides."""
        return Json(await processes.get(desk, caller, conflicts, conflict_id))

    @router.post("/api/conflicts/{conflict_id}/resolve", responses=documented(Resolved, 400, 404, 409))
    async def resolve(caller: Who, lineage: From, retry: Retry, conflict_id: str, body: ResolveRequest) -> Json:
        """Decide which side holds, as it is or with what both say in one; the other one is retired."""
        return Json(await conflicts.resolve(desk, caller, lineage, conflict_id, body, retry))

    return router

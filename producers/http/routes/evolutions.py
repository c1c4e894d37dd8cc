"""The routes of evolutions: what models made of items."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from kledger.answers.models import DecidedEvolution, Evolution, EvolutionList
from kledger.contract.words import EvolutionStatus
from producers.http.answers import Json, ReadJson, documented
from producers.http.parameters import Fresh, From, Limit, Offset, Reason, Retry, Who
from producers.http.routing import router as new_router
from producers.operations.desk import Desk
from producers.operations.models import evolutions, processes
from projections.views.processes.ask import Page

BASE = "/api/evolutions"


def routes(desk: Desk) -> list[APIRouter]:
    """The routers of this family."""
    return [_reads(desk), _decisions(desk)]


def _reads(desk: Desk) -> APIRouter:
    router = new_router("evolutions")

    @router.get(BASE, responses=documented(EvolutionList))
    async def list_evolutions(
        caller: Who,
        fresh: Fresh,
        status: EvolutionStatus | None = None,
        item_id: Annotated[str | None, Query(max_length=1_000, description="Only those of this item")] = None,
        limit: Limit = 20,
        offset: Offset = 0,
    ) -> Json:
        """The evolutions that the caller asked for, newest first."""
        page = Page(status, item_id, limit, offset)
        return ReadJson(await processes.listed(desk, caller, evolutions, page, fresh), fresh)

    @router.get(BASE + "/{evolution_id}", responses=documented(Evolution, 404))
    async def get(caller: Who, evolution_id: str) -> Json:
        """One evolution: what was asked, what the model proposed, what became of it and what it cost."""
        return Json(await processes.get(desk, caller, evolutions, evolution_id))

    return router


def _decisions(desk: Desk) -> APIRouter:
    router = new_router("evolutions", BASE + "/{evolution_id}")

    @router.post("/apply", responses=documented(DecidedEvolution, 403, 404, 409))
    async def apply(caller: Who, lineage: From, retry: Retry, evolution_id: str) -> Json:
        """Make the proposal the item's content."""
        return Json(await evolutions.apply(desk, caller, lineage, evolution_id, retry))

    @router.post("/reject", responses=documented(DecidedEvolution, 404, 409))
    async def reject(caller: Who, lineage: From, retry: Retry, evolution_id: str, reason: Reason = None) -> Json:
        """Keep the item as it is."""
        return Json(await evolutions.reject(desk, caller, lineage, evolution_id, reason, retry))

    @router.post("/revert", responses=documented(DecidedEvolution, 403, 404, 409, 410))
    async def revert(caller: Who, lineage: From, retry: Retry, evolution_id: str) -> Json:
        """Make the item again what it was before."""
        return Json(await evolutions.revert(desk, caller, lineage, evolution_id, retry))

    return router

"""The routes of refused events: look at them, try a parked one again, let it rest."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query

from kledger.answers.admin import Job, ParkingDecision, RefusedEvents
from kledger.contract.json_text import MOST_POSITION
from producers.http.answers import Json, ReadJson, documented
from producers.http.parameters import Fresh, Who
from producers.http.routing import router as new_router
from producers.operations.admin import refused
from producers.operations.desk import Desk

Position = Annotated[int, Path(ge=1, le=MOST_POSITION, description="The event's position in the log")]


def routes(desk: Desk) -> list[APIRouter]:
    """The routers of this family."""
    router = new_router("admin", "/api/admin/refused")

    @router.get("", responses=documented(RefusedEvents, 403))
    async def listed(
        caller: Who,
        fresh: Fresh,
        after: Annotated[int, Query(ge=0, le=MOST_POSITION, description="Only those after this position")] = 0,
        limit: Annotated[int, Query(ge=1, le=refused.MOST)] = 100,
        code: Annotated[str | None, Query(max_length=100, description="Only those refused with this code")] = None,
    ) -> Json:
        """The events that are in the log and do not count, with their reasons."""
        return ReadJson(await refused.listed(desk, caller, after=after, limit=limit, code=code, freshness=fresh), fresh)

    @router.post("/{position}/retry", status_code=202, responses=documented(Job, 403, 404, status=202))
    async def retry(caller: Who, position: Position) -> Json:
        """Fold a parked event after all, at its own place in the log, and swap."""
        return Json(await refused.retry(desk, caller, position), 202)

    @router.post("/{position}/dismiss", responses=documented(ParkingDecision, 403, 404, 409))
    async def dismiss(caller: Who, position: Position) -> Json:
        """Let a parked event rest: it stays refused and no longer asks for attention."""
        return Json(await refused.dismiss(desk, caller, position))

    return [router]

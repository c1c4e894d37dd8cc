"""The routes of scope types: which there are, and one more."""

from __future__ import annotations

from fastapi import APIRouter

from kledger.answers.sharing import RegisteredScopeType, ScopeTypes
from kledger.requests.knowledge import ScopeTypeRequest
from producers.http.answers import Json, ReadJson, documented
from producers.http.parameters import Fresh, From, Retry, Who
from producers.http.routing import router as new_router
from producers.operations.admin import scope_types
from producers.operations.desk import Desk


def routes(desk: Desk) -> list[APIRouter]:
    """The routers of this family."""
    router = new_router("scopes")

    @router.get("/api/scope_types", responses=documented(ScopeTypes))
    async def listed(_caller: Who, fresh: Fresh) -> Json:
        """The types of scopes that may be used, the most specific first."""
        return ReadJson(await scope_types.listed(desk, freshness=fresh), fresh)

    @router.post("/api/scope_types", status_code=201, responses=documented(RegisteredScopeType, 400, 403, status=201))
    async def register(caller: Who, lineage: From, retry: Retry, body: ScopeTypeRequest) -> Json:
        """Register a type of scope, or give it another priority; the operator's alone."""
        return Json(await scope_types.register(desk, caller, lineage, body, retry), 201)

    return [router]

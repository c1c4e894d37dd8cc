"""The routes of scope types: which there are, and one more."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel

from producers.http.answers.knowledge import Json, ReadAnswer, ReadJson, told
from producers.http.bodies import JsonRoute
from producers.http.parameters import Fresh, From, Retry, Who
from producers.operations.admin import scope_types
from producers.operations.desk import Desk
from producers.requests.knowledge import ScopeTypeRequest


class ScopeTypesAnswer(ReadAnswer):
    class ScopeType(BaseModel):
        type: str
        priority: float
        built_in: bool
        position: int | None

    scope_types: list[ScopeType]
    position: int


class RegisteredAnswer(BaseModel):
    type: str
    priority: float
    position: int
    event_id: str


def routes(desk: Desk) -> list[APIRouter]:
    """The routers of this family."""
    router = APIRouter(route_class=JsonRoute, tags=["scopes"])

    @router.get("/api/scope_types", responses=told(ScopeTypesAnswer))
    async def listed(_caller: Who, fresh: Fresh) -> Json:
        """The types of scopes that may be used, the most specific first."""
        return ReadJson(await scope_types.listed(desk, freshness=fresh), fresh)

    @router.post("/api/scope_types", status_code=201, responses=told(RegisteredAnswer, 400, 403, status=201))
    async def register(caller: Who, lineage: From, retry: Retry, body: ScopeTypeRequest) -> Json:
        """Register a type of scope, or give it another priority; the operator's alone."""
        return Json(await scope_types.register(desk, caller, lineage, body, retry), 201)

    return [router]

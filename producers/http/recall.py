"""The routes of recall that nobody searches for: at an agent's start, on a goal's focus, and the prompts (K7, K12)."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from ledger import prompts
from ledger.prompts import Language
from producers.http import recall_answers
from producers.http.answers import Json, told
from producers.http.bodies import JsonRoute
from producers.http.parameters import Fresh, From, GoalId, Owner, Retry, Who, named_types
from producers.operations import goals, startup
from producers.operations.desk import DEFAULT_WAIT, MAX_WAIT, Desk, Freshness
from producers.requests import FocusRequest


def routes(desk: Desk) -> list[APIRouter]:
    """The routers of this family."""
    return [_recall(desk), _prompts()]


class StartupQuery(BaseModel):
    """What a start asks."""

    q: Annotated[str, Field(max_length=4_000, description="What the agent is about to do; may be left out")] = ""
    top_k: Annotated[int, Field(ge=0, le=80, description="Related items at most")] = 5
    profile_k: Annotated[int, Field(ge=0, le=100, description="user_profile items at most")] = 20
    min_score: Annotated[int, Field(ge=0, le=5)] = 3
    types: Annotated[str | None, Field(description="Related items of any of these, separated by commas")] = None
    record: bool = True
    min_position: Annotated[int, Field(ge=0, le=2**62, description="Answer out of a view that has this position")] = 0
    wait: Annotated[float, Field(ge=0, le=MAX_WAIT, description="Seconds to wait for it")] = DEFAULT_WAIT


def _recall(desk: Desk) -> APIRouter:
    router = APIRouter(route_class=JsonRoute, tags=["recall"])

    @router.get("/api/recall/startup", responses=told(recall_answers.StartedAnswer), name="startup")
    async def start(caller: Who, lineage: From, asked: Annotated[StartupQuery, Query()]) -> Json:
        """What an agent that starts has to know: the caller's profile, then related knowledge; recorded as served."""
        return Json(
            await startup.startup(
                desk,
                caller,
                lineage,
                asked.q,
                top_k=asked.top_k,
                profile_k=asked.profile_k,
                min_score=asked.min_score,
                types=named_types(asked.types),
                record=asked.record,
                freshness=Freshness(asked.min_position, asked.wait),
            )
        )

    @router.post("/api/goals/{goal_id}/focus", responses=told(recall_answers.FocusedAnswer, 400, 410, 413))
    async def focus(
        caller: Who, lineage: From, retry: Retry, fresh: Fresh, goal_id: GoalId, body: FocusRequest
    ) -> Json:
        """Focus a goal: knowledge that fits it is looked up, kept on the goal, and told as text."""
        return Json(await goals.focus(desk, caller, lineage, goal_id, body, retry, freshness=fresh))

    @router.get("/api/goals/{goal_id}", responses=told(recall_answers.GoalAnswer, 404, 410))
    async def goal(caller: Who, goal_id: GoalId, fresh: Fresh, owner: Owner = None) -> Json:
        """A goal of the caller's, with what the caller may see now of the knowledge that it was given."""
        return Json(await goals.goal(desk, caller, goal_id, owner=owner, freshness=fresh))

    return router


def _prompts() -> APIRouter:
    router = APIRouter(route_class=JsonRoute, tags=["prompts"])

    @router.get("/api/prompts", responses=told(recall_answers.PromptsAnswer))
    async def list_prompts(_caller: Who) -> Json:
        """The prompts that ship with the ledger."""
        found = [prompts.prompt(name) for name in prompts.prompt_names()]
        listed = [{"name": each.name, "title": each.title, "languages": prompts.LANGUAGES} for each in found]
        return Json({"prompts": listed})

    @router.get("/api/prompts/{name}", responses=told(recall_answers.PromptAnswer, 404))
    async def prompt(_caller: Who, name: str, language: Language = "zh") -> Json:
        """One prompt, as text."""
        return Json(prompts.prompt(name, language))

    return router

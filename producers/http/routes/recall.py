"""The routes of recall at an agent's start and on a goal's focus, and of the prompts."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from kledger.answers.recall import FocusedGoal, Goal, GoalList, Prompt, PromptList, Recalled, Startup
from kledger.contract.language import LANGUAGES
from kledger.contract.recall import Match
from kledger.requests.knowledge import FocusRequest
from kledger.requests.recall import MOST_MESSAGE, RecallRequest
from ledger import prompts
from producers.http.answers import Json, ReadJson, documented
from producers.http.parameters import (
    Fresh,
    FreshQuery,
    From,
    GoalId,
    InLanguage,
    Limit,
    Offset,
    Own,
    Owner,
    Retry,
    Who,
    moment_or_position,
    named_types,
)
from producers.http.routing import router as new_router
from producers.operations.desk import Desk
from producers.operations.recall import goals, startup
from producers.operations.recall import recall as by_message


def routes(desk: Desk) -> list[APIRouter]:
    """The routers of this family."""
    return [_recall(desk), _prompts()]


class StartupQuery(FreshQuery):
    """What a start asks."""

    q: Annotated[str, Field(max_length=MOST_MESSAGE, description="What the agent is about to do; may be left out")] = ""
    top_k: Annotated[int, Field(ge=0, le=80, description="Related items at most")] = 5
    profile_k: Annotated[int, Field(ge=0, le=100, description="user_profile items at most")] = 20
    min_score: Annotated[int, Field(ge=0, le=5)] = 3
    min_match: Annotated[Match | None, Field(description="Leave out related items that match `q` less")] = None
    types: Annotated[str | None, Field(description="Related items of any of these, separated by commas")] = None
    record: bool = True


def _recall(desk: Desk) -> APIRouter:
    router = new_router("recall")

    @router.get("/api/recall/startup", responses=documented(Startup), name="startup")
    async def start(
        caller: Who, lineage: From, own: Own, language: InLanguage, asked: Annotated[StartupQuery, Query()]
    ) -> Json:
        """What an agent that starts has to know: the caller's profile, then related knowledge; recorded as served."""
        fresh = asked.freshness(own)
        return ReadJson(
            await startup.startup(
                desk,
                caller,
                lineage,
                asked.q,
                top_k=asked.top_k,
                profile_k=asked.profile_k,
                min_score=asked.min_score,
                min_match=asked.min_match,
                types=named_types(asked.types),
                record=asked.record,
                language=language,
                freshness=fresh,
            ),
            fresh,
        )

    @router.post("/api/memory/recall", responses=documented(Recalled, 400, 413))
    async def recall(caller: Who, lineage: From, fresh: Fresh, language: InLanguage, body: RecallRequest) -> Json:
        """What is known that answers a message, with its reasons and as a text for a prompt; recorded as served."""
        return ReadJson(
            await by_message.recall(
                desk,
                caller,
                lineage,
                body,
                as_of=moment_or_position(str(body.as_of), "as_of") if body.as_of is not None else None,
                language=body.language or language,
                freshness=fresh,
            ),
            fresh,
        )

    @router.post("/api/goals/{goal_id}/focus", responses=documented(FocusedGoal, 400, 410, 413))
    async def focus(
        caller: Who,
        lineage: From,
        retry: Retry,
        fresh: Fresh,
        language: InLanguage,
        goal_id: GoalId,
        body: FocusRequest,
    ) -> Json:
        """Focus a goal: knowledge that fits it is looked up, kept on the goal, and told as text."""
        focused = await goals.focus(desk, caller, lineage, goal_id, body, retry, language=language, freshness=fresh)
        return ReadJson(focused, fresh)

    @router.get("/api/goals", responses=documented(GoalList))
    async def list_goals(
        caller: Who,
        fresh: Fresh,
        owner: Owner = None,
        limit: Limit = 20,
        offset: Offset = 0,
    ) -> Json:
        """The goals of the caller in brief, the one that was focused last first.

        The operator's are those of all, unless an owner is named.
        """
        found = await goals.listed(desk, caller, owner=owner, limit=limit, offset=offset, freshness=fresh)
        return ReadJson(found, fresh)

    @router.get("/api/goals/{goal_id}", responses=documented(Goal, 404, 410))
    async def goal(caller: Who, goal_id: GoalId, fresh: Fresh, language: InLanguage, owner: Owner = None) -> Json:
        """A goal of the caller's, with what the caller may see now of the knowledge that it was given."""
        shown = await goals.goal(desk, caller, goal_id, owner=owner, language=language, freshness=fresh)
        return ReadJson(shown, fresh)

    return router


def _prompts() -> APIRouter:
    router = new_router("prompts")

    @router.get("/api/prompts", responses=documented(PromptList))
    async def list_prompts(_caller: Who, language: InLanguage) -> Json:
        """The prompts that ship with the ledger."""
        found = [prompts.prompt(name, language) for name in prompts.prompt_names()]
        listed = [
            {"name": each.name, "title": each.title, "description": each.description, "languages": LANGUAGES}
            for each in found
        ]
        return Json({"prompts": listed})

    @router.get("/api/prompts/{name}", responses=documented(Prompt, 404))
    async def prompt(_caller: Who, name: str, language: InLanguage) -> Json:
        """One prompt, as text."""
        return Json(prompts.prompt(name, language))

    return router

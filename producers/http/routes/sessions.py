"""The routes of sessions: what is said in them, what fits a model's window, and their end."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query

from kledger.answers.sessions import (
    AppendedMessages,
    Expanded,
    MessageList,
    SaidMessages,
    SessionContext,
    SessionKnowledge,
    SessionList,
    SessionMoved,
    SessionScratchpad,
    SessionSummaries,
)
from kledger.contract.bounds import MAX_ID
from kledger.contract.sessions import Window
from kledger.contract.words import SessionFilter
from kledger.requests.sessions import AppendRequest, ScratchpadRequest
from producers.http.answers import Json, ReadJson, documented
from producers.http.bodies import BatchRoute
from producers.http.parameters import Fresh, From, Limit, Offset, Owner, RecordId, SessionId, Who
from producers.http.routing import router as new_router
from producers.operations.desk import Desk
from producers.operations.sessions import appending, closing, outcome, reading, scratchpad
from producers.operations.sessions import context as window

After = Annotated[str | None, Query(max_length=MAX_ID, description="Messages after the one with this id")]
MaxTokens = Annotated[Window, Query(description="Tokens of the model's window")]
ForModel = Annotated[str | None, Query(max_length=200, description="The model, by whose tokens is counted")]


def routes(desk: Desk) -> list[APIRouter]:
    """The routers of this family."""
    return [_appending(desk), _sessions(desk)]


def _appending(desk: Desk) -> APIRouter:
    router = new_router("sessions", route_class=BatchRoute)

    @router.post("/api/sessions/{session_id}/messages", responses=documented(AppendedMessages, 400, 410, 413))
    async def append(caller: Who, lineage: From, session_id: SessionId, body: AppendRequest) -> Json:
        """Append messages to a session of the caller's, which opens with its first one; an id counts once."""
        return Json(await appending.append(desk, caller, lineage, session_id, body))

    return router


def _sessions(desk: Desk) -> APIRouter:
    router = new_router("sessions")

    @router.get("/api/sessions", responses=documented(SessionList))
    async def list_sessions(
        caller: Who,
        fresh: Fresh,
        status: SessionFilter | None = None,
        owner: Owner = None,
        limit: Limit = 20,
        offset: Offset = 0,
    ) -> Json:
        """The caller's sessions, the one that was opened or closed last first; by default those that have words.

        The operator's are those of all, unless an owner is named.
        """
        page = await reading.listed(
            desk, caller, status=status, owner=owner, limit=limit, offset=offset, freshness=fresh
        )
        return ReadJson(page, fresh)

    @router.get("/api/sessions/{session_id}/messages", responses=documented(MessageList, 404))
    async def messages(
        caller: Who, session_id: SessionId, after: After = None, limit: Limit = 100, owner: Owner = None
    ) -> Json:
        """The messages of a session in order; fewer than `limit` where they are large."""
        return Json(await reading.messages(desk, caller, session_id, after=after, limit=limit, owner=owner))

    @router.get("/api/sessions/{session_id}/knowledge", responses=documented(SessionKnowledge, 404))
    async def session_knowledge(
        caller: Who, session_id: SessionId, fresh: Fresh, after: After = None, limit: Limit = 100, owner: Owner = None
    ) -> Json:
        """The items that came of a page of a session's messages, or of the session as a whole."""
        found = await outcome.knowledge(
            desk, caller, session_id, after=after, limit=limit, owner=owner, freshness=fresh
        )
        return ReadJson(found, fresh)

    @router.get("/api/messages/{record_id}", responses=documented(SaidMessages))
    async def said_message(caller: Who, record_id: RecordId, owner: Owner = None) -> Json:
        """The words of a message by its id, with the session of the caller's in which it was said; no session: none."""
        return Json(await reading.named(desk, caller, record_id, owner=owner))

    @router.get("/api/sessions/{session_id}/context", responses=documented(SessionContext, 404))
    async def context(
        caller: Who, session_id: SessionId, max_tokens: MaxTokens, model: ForModel = None, owner: Owner = None
    ) -> Json:
        """What of a session fits a model's window, in the order of importance: prompts, the last question, results."""
        return Json(await window.context(desk, caller, session_id, max_tokens=max_tokens, model=model, owner=owner))

    @router.get("/api/sessions/{session_id}/expand/{record_id}", responses=documented(Expanded, 404))
    async def expand(caller: Who, session_id: SessionId, record_id: RecordId, owner: Owner = None) -> Json:
        """The words behind an id, whole: of a message that was shortened, or of those that a summary stands for."""
        return Json(await reading.expand(desk, caller, session_id, record_id, owner=owner))

    @router.get("/api/sessions/{session_id}/summaries", responses=documented(SessionSummaries, 404))
    async def summaries(caller: Who, session_id: SessionId, owner: Owner = None) -> Json:
        """What was summed up of a session by now: segments in their order, and all of it; no model is asked."""
        return Json(await reading.summaries(desk, caller, session_id, owner=owner))

    @router.get("/api/sessions/{session_id}/scratchpad", responses=documented(SessionScratchpad, 404))
    async def read_scratchpad(caller: Who, session_id: SessionId, owner: Owner = None) -> Json:
        """The scratchpad of a session; empty where nothing was noted, or nothing was said for so many minutes."""
        return Json(await scratchpad.read(desk, caller, session_id, owner=owner))

    @router.patch("/api/sessions/{session_id}/scratchpad", responses=documented(SessionScratchpad, 400, 404, 410, 413))
    async def patch_scratchpad(
        caller: Who, session_id: SessionId, body: ScratchpadRequest, owner: Owner = None
    ) -> Json:
        """Note where the work stands, as a merge patch (RFC 7396): null removes, a list is replaced whole."""
        return Json(await scratchpad.patch(desk, caller, session_id, body, owner=owner))

    @router.post("/api/sessions/{session_id}/close", responses=documented(SessionMoved, 404))
    async def close(caller: Who, lineage: From, session_id: SessionId, owner: Owner = None) -> Json:
        """Close a session; a further message opens it again."""
        return Json(await closing.close(desk, caller, lineage, session_id, owner=owner))

    @router.delete("/api/sessions/{session_id}", responses=documented(SessionMoved, 404))
    async def remove(caller: Who, lineage: From, session_id: SessionId, owner: Owner = None) -> Json:
        """Remove the words of a session for good; the log keeps that there was one."""
        return Json(await closing.remove(desk, caller, lineage, session_id, owner=owner))

    return router

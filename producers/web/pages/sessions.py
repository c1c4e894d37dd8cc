"""Sessions: the caller's conversations, what was said in each, where the work stands, and what came of it."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from kledger.answers.lineage import LineageEvent
from kledger.answers.sessions import SavedInSession
from kledger.client.clients import AsyncLedgerClient
from kledger.contract.errors import UnknownReference
from producers.web.addresses import HOME
from producers.web.pages.traces import described
from producers.web.references import EVENTS
from producers.web.rendering import page
from producers.web.site import Page, Site
from producers.web.visit import Visit

PAGE = 50
"""Sessions, or messages, on one page."""
MOST_CAME = 50
"""Events that came of a session, the latest."""


async def sessions(_: Site, visit: Visit) -> Response:
    """The list."""
    offset, owner = visit.number("offset", 0, most=2**31), visit.text("owner")
    listed = await visit.ledger.sessions(status="all", owner=owner, limit=PAGE, offset=offset)
    following = offset + listed["count"] if 0 < listed["count"] < listed["total"] - offset else None
    return page(visit, "sessions.html", sessions=listed, owner=owner, following=following)


async def session(_: Site, visit: Visit) -> Response:
    """One session; with `words` a message, or those that a summary stands for, whole."""
    session_id, owner = visit.part("id"), visit.text("owner")
    own = visit.ledger.session(session_id)
    if (record := visit.text("words")) is not None:
        told = await own.expand(record, owner=owner)
        return page(visit, "session_words.html", told=told, owner=owner)
    after = visit.text("after")
    messages, scratchpad, summed, saved, came = await asyncio.gather(
        own.messages(after=after, limit=PAGE, owner=owner),
        own.scratchpad(owner=owner),
        own.summaries(owner=owner),
        own.knowledge(after=after, limit=PAGE, owner=owner),
        _came_of(visit.ledger, session_id),
    )
    of_message: dict[str, list[SavedInSession]] = {each["id"]: [] for each in messages["messages"]}
    for each in saved["results"]:
        of_message.setdefault(each["message_id"] or "", []).append(each)
    return page(
        visit,
        "session.html",
        id=session_id,
        owner=owner,
        messages=messages,
        scratchpad=scratchpad["scratchpad"],
        summed=summed,
        saved=saved,
        of_message=of_message,
        came=described(came[-MOST_CAME:]),
        words=EVENTS,
    )


async def _came_of(ledger: AsyncLedgerClient, session_id: str) -> list[LineageEvent]:
    """What names the session as its trace, as what a model found in it does; nothing where nothing does."""
    try:
        answer = await ledger.lineage(f"trace:{session_id}")
    except UnknownReference:
        return []
    return answer["events"]


PAGES = (Page(f"{HOME}/sessions", sessions), Page(f"{HOME}/sessions/{{id}}", session))

"""A trace, a message or an event, and everything that it caused, in order; and where one looks for them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from starlette.responses import RedirectResponse, Response

from kledger.answers.lineage import LineageEvent
from kledger.answers.sessions import SaidMessage
from kledger.contract.errors import InvalidPayload, NotAvailable, UnknownReference, UnknownSession
from producers.web.addresses import HOME
from producers.web.headers import OF_A_PAGE
from producers.web.references import EVENTS, Named, named
from producers.web.rendering import page, page_of
from producers.web.site import Handle, Page, Site
from producers.web.visit import Visit

PAGE = 100
"""Events on one page."""
LATEST = 10
"""Traces, recalls, sessions and goals on the page of all of them."""
KINDS: Mapping[str, str] = {
    "trace": "traces",
    "message": "messages",
    "event": "events",
    "recall": "recalls",
    "session": "sessions",
    "item": "items",
}
"""What can be looked up, and where its pages are."""


async def traces(_: Site, visit: Visit) -> Response:
    """Where one looks a trace up, with the latest traces, recalls, sessions and goals."""
    wanted, kind = visit.text("find"), visit.one_of("kind", tuple(KINDS), "trace")
    if wanted is not None:
        return RedirectResponse(page_of(KINDS[kind], wanted), 303, headers=OF_A_PAGE)
    latest, recalls, sessions, goals = await asyncio.gather(
        visit.ledger.traces(limit=LATEST, before=visit.number("before", 0) or None),
        visit.ledger.recalls.list(limit=LATEST, counts=True),
        visit.ledger.sessions(status="all", limit=LATEST),
        visit.ledger.goals(limit=LATEST),
    )
    return page(
        visit, "traces.html", kinds=tuple(KINDS), traces=latest, recalls=recalls, sessions=sessions, goals=goals
    )


def _around(kind: str) -> Handle:
    async def show(_: Site, visit: Visit) -> Response:
        named_id = visit.part("id")
        if not named_id.strip():
            raise InvalidPayload("an empty id names nothing", errors=[])
        (everything, more), said, has_session = await asyncio.gather(
            _events(visit, f"{kind}:{named_id}"),
            _said(visit, named_id) if kind == "message" else _nothing(),
            _has_session(visit, named_id) if kind == "trace" else _nothing(),
        )
        if not everything and not said:
            everything = (await visit.ledger.lineage(f"{kind}:{named_id}"))["events"]  # raises what there is to say
        after = visit.number("after", 0)
        events = [event for event in everything if event["position"] > after]
        return page(
            visit,
            "trace.html",
            kind=kind,
            kinds=KINDS,
            id=named_id,
            said=said or [],
            has_session=bool(has_session),
            total=len(everything),
            actors=sorted({event["actor"] for event in everything}),
            began=everything[0]["time"] if everything else None,
            ended=everything[-1]["time"] if everything else None,
            events=described(events[:PAGE]),
            words=EVENTS,
            following=events[PAGE - 1]["position"] if len(events) > PAGE else None,
            more=more,
        )

    return show


async def _events(visit: Visit, ref: str) -> tuple[Sequence[LineageEvent], bool]:
    """The events around a reference, and whether there may be more; none where nothing that the person may see names
    it."""
    try:
        answer = await visit.ledger.lineage(ref)
    except UnknownReference:
        return [], False
    return answer["events"], "more" in answer


async def _said(visit: Visit, message_id: str) -> Sequence[SaidMessage]:
    """The words of a message, with the session of each."""
    try:
        return (await visit.ledger.said(message_id))["results"]
    except NotAvailable:
        return []


async def _has_session(visit: Visit, session_id: str) -> bool:
    try:
        await visit.ledger.session(session_id).messages(limit=1)
    except (UnknownSession, NotAvailable):
        return False
    return True


async def _nothing() -> None:
    return None


def described(events: Sequence[LineageEvent]) -> list[tuple[LineageEvent, Named]]:
    """Each event with what it is about."""
    return [(event, named(event["entity"], event["entity_id"])) for event in events]


PAGES = (
    Page(f"{HOME}/traces", traces),
    *(Page(f"{HOME}/{KINDS[kind]}/{{id}}", _around(kind)) for kind in ("trace", "message", "event")),
)

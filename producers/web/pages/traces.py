"""A trace, a message or an event, and everything that it caused, in order; and where one looks for them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from starlette.responses import RedirectResponse, Response

from kledger.answers.lineage import LineageEvent
from kledger.contract.errors import InvalidPayload
from producers.web.addresses import HOME
from producers.web.headers import OF_A_PAGE
from producers.web.references import EVENTS, Named, named
from producers.web.rendering import page, page_of
from producers.web.site import Handle, Page, Site
from producers.web.visit import Visit

PAGE = 100
"""Events on one page."""
LATEST = 10
"""Recalls, and sessions, of the caller's on the page of all of them."""
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
    """Where one looks a trace up, with the caller's latest recalls and sessions."""
    wanted, kind = visit.text("find"), visit.one_of("kind", tuple(KINDS), "trace")
    if wanted is not None:
        return RedirectResponse(page_of(KINDS[kind], wanted), 303, headers=OF_A_PAGE)
    recalls, sessions = await asyncio.gather(
        visit.ledger.recalls.list(limit=LATEST), visit.ledger.sessions(status="all", limit=LATEST)
    )
    return page(visit, "traces.html", kinds=tuple(KINDS), recalls=recalls, sessions=sessions)


def _around(kind: str) -> Handle:
    async def show(_: Site, visit: Visit) -> Response:
        named_id = visit.part("id")
        if not named_id.strip():
            raise InvalidPayload("an empty id names nothing", errors=[])
        answer = await visit.ledger.lineage(f"{kind}:{named_id}")
        after = visit.number("after", 0)
        events = [event for event in answer["events"] if event["position"] > after]
        return page(
            visit,
            "trace.html",
            kind=kind,
            kinds=KINDS,
            id=named_id,
            total=len(answer["events"]),
            actors=sorted({event["actor"] for event in answer["events"]}),
            began=answer["events"][0]["time"],
            ended=answer["events"][-1]["time"],
            events=described(events[:PAGE]),
            words=EVENTS,
            following=events[PAGE - 1]["position"] if len(events) > PAGE else None,
        )

    return show


def described(events: Sequence[LineageEvent]) -> list[tuple[LineageEvent, Named]]:
    """Each event with what it is about."""
    return [(event, named(event["entity"], event["entity_id"])) for event in events]


PAGES = (
    Page(f"{HOME}/traces", traces),
    *(Page(f"{HOME}/{KINDS[kind]}/{{id}}", _around(kind)) for kind in ("trace", "message", "event")),
)

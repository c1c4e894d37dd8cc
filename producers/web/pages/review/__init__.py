"""Review: what waits for a decision, in tabs by what it is; each decision is a form."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from producers.web.pages.review import approvals, conflicts, expired, held, proposals, refused
from producers.web.pages.review.tab import REVIEW
from producers.web.pages.review.waiting import waiting
from producers.web.rendering import page
from producers.web.site import Page, Site
from producers.web.visit import Visit

TABS = (conflicts.TAB, proposals.TAB, approvals.TAB, held.TAB, expired.TAB, refused.TAB)


async def review(_: Site, visit: Visit) -> Response:
    """The page: every tab with how much waits there, and one of them open."""
    tabs = [tab for tab in TABS if visit.session.operator or not tab.for_operators]
    open_one = next((tab for tab in tabs if tab.name == visit.text("tab")), tabs[0])
    shown, counts = await asyncio.gather(open_one.shown(visit), waiting(visit))
    counted = [(tab, counts[tab.name]) for tab in tabs]
    return page(visit, f"review/{open_one.name}.html", tabs=counted, open_tab=open_one, path=REVIEW, **shown)


PAGES = (Page(REVIEW, review), *(each for tab in TABS for each in tab.decisions))

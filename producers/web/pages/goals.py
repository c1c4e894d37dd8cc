"""Goals: what the caller's agents work on, and what was put before them when they turned to it."""

from __future__ import annotations

from starlette.responses import Response

from producers.web.addresses import HOME
from producers.web.rendering import page
from producers.web.site import Page, Site
from producers.web.visit import Visit

PAGE = 50
"""Goals on one page."""


async def goals(_: Site, visit: Visit) -> Response:
    """The list, the one that was focused last first."""
    offset, owner = visit.number("offset", 0, most=2**31), visit.text("owner")
    listed = await visit.ledger.goals(owner=owner, limit=PAGE, offset=offset)
    following = offset + listed["count"] if 0 < listed["count"] < listed["total"] - offset else None
    return page(visit, "goals.html", goals=listed, owner=owner, following=following)


async def goal(_: Site, visit: Visit) -> Response:
    """One goal as it was focused last, with its knowledge as it is now."""
    return page(visit, "goal.html", goal=await visit.ledger.goal(visit.part("id"), owner=visit.text("owner")))


PAGES = (Page(f"{HOME}/goals", goals), Page(f"{HOME}/goals/{{id}}", goal))

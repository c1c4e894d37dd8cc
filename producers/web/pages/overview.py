"""Overview: how much is known, how sure it is, what came of it, and how the node stands."""

from __future__ import annotations

from starlette.responses import Response

from producers.web.addresses import HOME
from producers.web.rendering import page
from producers.web.site import Page, Site
from producers.web.visit import Visit


async def overview(_: Site, visit: Visit) -> Response:
    """The page."""
    health = await visit.ledger.memory_health()
    status = await visit.ledger.status() if visit.session.operator else None
    return page(visit, "overview.html", health=health, status=status)


PAGES = (Page(HOME, overview),)
